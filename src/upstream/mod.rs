//! What happens inside `upstream{}`.

mod add;
mod extend;
mod fake;
mod inherit;
mod modules;
mod reach;
mod singlets;

pub use add::{check_backups, cmd_add_upstream, AddedBackups};
pub use extend::cmd_extend_single_peers;
pub use fake::NAME as FAKE;
pub use modules::has_foreign_methods;
pub use reach::make_reachable;
pub use singlets::cmd_combine_server_singlets;

use core::ptr;

use nginx_sys::{
    ngx_array_t, ngx_http_upstream_init_peer_pt, ngx_http_upstream_init_pt,
    ngx_http_upstream_server_t, ngx_shm_zone_t,
};

use crate::nginx::{memory, ConfResult, SrvConf};
use singlets::Singlet;

/// The module's part of an upstream.
#[derive(Default)]
pub struct UpstreamConf {
    /// `peer.init` of the upstream, if it is a member of an upstrand and ours is in its place.
    pub member_init: ngx_http_upstream_init_peer_pt,
    /// The upstream's number in nginx's list, as the configuration made it.
    pub number: usize,
    /// `extend_single_peers` is given.
    extended: bool,
    /// `peer.init_upstream` and `peer.init` that ours wrap for `extend_single_peers`.
    extended_init_upstream: ngx_http_upstream_init_pt,
    extended_init: ngx_http_upstream_init_peer_pt,
    /// The upstream is a singlet of another one.
    singlet: Option<Singlet>,
    /// Singlets made of this upstream's servers: their number and their peers', and their zone.
    singlets: usize,
    singlet_peers: usize,
    singlet_zone: Option<*mut ngx_shm_zone_t>,
}

/// The module's part of an upstream.
pub fn conf_of<'a>(uscf: SrvConf) -> Option<&'a mut UpstreamConf> {
    // SAFETY: the module keeps an UpstreamConf for each upstream that has a srv_conf; it lives as
    // long as the configuration, and no borrow is held across a call into nginx.
    uscf.conf(crate::module())
        .map(|mut conf| unsafe { conf.as_mut() })
}

/// The servers of an upstream; those of a singlet are made from its host's.
fn servers_of(uscf: SrvConf) -> ConfResult<Vec<ngx_http_upstream_server_t>> {
    match conf_of(uscf).and_then(|conf| conf.singlet.as_ref()) {
        Some(singlet) => singlet.servers(),
        None => memory::collect(uscf.servers().iter().copied()),
    }
}

/// Runs `body`, an upstream's initialisation, with other servers than those that the configuration
/// declares: nginx makes its peers of them, and keeps nothing of the list itself.
fn with_servers<T>(
    uscf: SrvConf,
    mut servers: Vec<ngx_http_upstream_server_t>,
    body: impl FnOnce() -> T,
) -> T {
    let declared = uscf.fields().servers;
    let mut list = ngx_array_t {
        elts: servers.as_mut_ptr().cast(),
        nelts: servers.len(),
        size: size_of::<ngx_http_upstream_server_t>(),
        nalloc: servers.len(),
        pool: ptr::null_mut(),
    };
    uscf.fields_mut().servers = &mut list;
    let result = body();
    uscf.fields_mut().servers = declared;
    result
}
