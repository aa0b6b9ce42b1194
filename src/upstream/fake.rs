//! A server that is down and is never asked: it stands beside a lone one, which nginx then no
//! longer takes for the only one, so that its failures count.

use core::mem::zeroed;

use nginx_sys::{ngx_addr_t, ngx_http_upstream_server_t, sockaddr, sockaddr_in, AF_INET};

use crate::nginx::{string, ConfResult, Pool, Refused};

/// Its name; no method asks a server that is down, so only this module's status sees it, and leaves
/// it out.
pub const NAME: &[u8] = b"0.0.0.0:0";

/// Makes such a server in the pool.
pub fn server(pool: Pool) -> ConfResult<ngx_http_upstream_server_t> {
    let address = pool.zeroed::<sockaddr_in>(1).ok_or(Refused::Logged)?;
    // SAFETY: fresh memory of the pool.
    unsafe { (*address.as_ptr()).sin_family = AF_INET as _ };
    let addr = pool
        .put(ngx_addr_t {
            sockaddr: address.as_ptr().cast::<sockaddr>(),
            socklen: size_of::<sockaddr_in>() as _,
            name: string(NAME),
        })
        .ok_or(Refused::Logged)?;
    // SAFETY: zeros are an empty server.
    let mut server: ngx_http_upstream_server_t = unsafe { zeroed() };
    server.name = string(NAME);
    server.addrs = addr.as_ptr();
    server.naddrs = 1;
    server.weight = 1;
    server.max_fails = 1;
    server.fail_timeout = 10;
    server.down = 1;
    Ok(server)
}
