//! `combine_server_singlets [SUFFIX [WIDTH | byname]] [nobackup];`
//!
//! A singlet keeps what its host has. Its lines may stand below this directive, so a singlet is
//! only named here; it is finished when nginx initialises it, which is after its host.

use core::ffi::{c_char, c_void};
use core::slice;

use nginx_sys::{
    ngx_command_t, ngx_conf_t, ngx_http_max_module, ngx_http_upstream_add,
    ngx_http_upstream_init_round_robin, ngx_http_upstream_server_t, ngx_http_upstream_srv_conf_t,
    ngx_int_t, ngx_str_t, ngx_uint_t, ngx_url_t, NGX_HTTP_UPSTREAM_BACKUP,
    NGX_HTTP_UPSTREAM_CREATE, NGX_HTTP_UPSTREAM_DOWN, NGX_HTTP_UPSTREAM_FAIL_TIMEOUT,
    NGX_HTTP_UPSTREAM_MAX_CONNS, NGX_HTTP_UPSTREAM_MAX_FAILS, NGX_HTTP_UPSTREAM_WEIGHT,
};

use super::extend::is_resolved;
use super::{conf_of, fake, inherit, modules, with_servers};
use crate::nginx::memory::{collect, push};
use crate::nginx::{
    bytes, callback, upstream_module, Conf, ConfResult, Place, Refused, SrvConf, Text,
};

/// The method lets servers change at run time.
#[cfg(upstream_resolve)]
use nginx_sys::NGX_HTTP_UPSTREAM_MODIFY;
#[cfg(not(upstream_resolve))]
const NGX_HTTP_UPSTREAM_MODIFY: u32 = 0;

/// Names longer than this come from a typo in WIDTH.
const WIDEST: usize = 4096;

/// What `upstream{}` allows for a round robin upstream.
pub const FLAGS: ngx_uint_t = (NGX_HTTP_UPSTREAM_CREATE
    | NGX_HTTP_UPSTREAM_MODIFY
    | NGX_HTTP_UPSTREAM_WEIGHT
    | NGX_HTTP_UPSTREAM_MAX_CONNS
    | NGX_HTTP_UPSTREAM_MAX_FAILS
    | NGX_HTTP_UPSTREAM_FAIL_TIMEOUT
    | NGX_HTTP_UPSTREAM_DOWN
    | NGX_HTTP_UPSTREAM_BACKUP) as ngx_uint_t;

/// Addresses that a name resolved at run time is given room for.
const RESOLVED: usize = 16;

/// An upstream in which one server of its host is active.
pub struct Singlet {
    /// The upstream whose servers it has.
    pub host: SrvConf,
    /// The host's servers that the singlet knows: those above the directive.
    known: usize,
    /// The number of the active one among them.
    pub active: usize,
    /// The others are down, not backups.
    pub nobackup: bool,
    /// The directive.
    pub place: Place,
    /// What stands beside the active server with `nobackup`.
    down: ngx_http_upstream_server_t,
}

/// `combine_server_singlets [SUFFIX [WIDTH | byname]] [nobackup];`
///
/// # Safety
///
/// Called by nginx while it reads an `upstream{}` block.
pub unsafe extern "C" fn cmd_combine_server_singlets(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: as nginx calls it.
    unsafe { callback::directive(cf, combine) }
}

enum Tail {
    Number(usize),
    Name,
}

fn combine(conf: Conf) -> ConfResult {
    let host = conf.upstream()?;
    let words = collect(conf.args().iter().skip(1).map(bytes))?;
    let (words, nobackup) = match words.as_slice() {
        [words @ .., b"nobackup"] => (words, true),
        words => (words, false),
    };
    let (suffix, tail): (&[u8], Tail) = match words {
        [] => (b"", Tail::Number(0)),
        [b"byname"] => (b"", Tail::Name),
        [suffix] => (suffix, Tail::Number(0)),
        [b"byname", width] => {
            return conf.refuse(format_args!(
                "setting field width is not permitted when using \"byname\" value: \"{}\"",
                Text(width)
            ))
        }
        [suffix, b"byname"] => (suffix, Tail::Name),
        [suffix, width] => match parse_width(width) {
            Some(width) => (suffix, Tail::Number(width)),
            None => {
                return conf.refuse(format_args!(
                    "field width \"{}\" must be an integer value",
                    Text(width)
                ))
            }
        },
        [.., last] => return conf.refuse(format_args!("invalid parameter \"{}\"", Text(last))),
    };
    if host.servers().is_empty() {
        return conf.refuse(format_args!("no server so far declared to build singlets"));
    }

    let known = host.servers().len();
    let down = fake::server(conf.pool()?)?;
    for active in 0..known {
        let name = conf.pool()?.write(|writer| {
            writer.text(host.name());
            writer.text(suffix);
            match tail {
                Tail::Number(width) => writer.padded(active.saturating_add(1) as u64, width),
                Tail::Name => {
                    let server = host
                        .servers()
                        .get(active)
                        .map_or(&[][..], |s| bytes(&s.name));
                    for byte in server {
                        writer.text(if *byte == b':' {
                            b"_"
                        } else {
                            slice::from_ref(byte)
                        });
                    }
                }
            }
        });
        let name = name.ok_or(Refused::Logged)?;
        let singlet = Singlet {
            host,
            known,
            active,
            nobackup,
            place: conf.place(),
            down,
        };
        declare(conf, name, singlet)?;
    }
    Ok(())
}

fn parse_width(text: &[u8]) -> Option<usize> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(text)
        .ok()?
        .parse()
        .ok()
        .filter(|width| *width <= WIDEST)
}

/// Declares a singlet as `upstream{}` would.
fn declare(conf: Conf, name: ngx_str_t, singlet: Singlet) -> ConfResult {
    let pool = conf.pool()?;
    // SAFETY: zeros are an empty ngx_url_t.
    let mut url: ngx_url_t = unsafe { core::mem::zeroed() };
    url.host = name;
    url.set_no_resolve(1);
    url.set_no_port(1);
    // SAFETY: with NGX_HTTP_UPSTREAM_CREATE nginx takes the host as it is.
    let uscf = unsafe { SrvConf::from_ptr(ngx_http_upstream_add(conf.as_ptr(), &mut url, FLAGS)) }
        .ok_or(Refused::Logged)?;

    // SAFETY: set before any http{} is read.
    let modules = unsafe { ngx_http_max_module };
    let confs = pool.zeroed::<*mut c_void>(modules).ok_or(Refused::Logged)?;
    uscf.fields_mut().srv_conf = confs.as_ptr();
    uscf.set_conf(upstream_module(), uscf.as_ptr().cast());
    for module in modules::all(conf) {
        modules::create_conf(conf, uscf, module)?;
    }

    uscf.fields_mut().servers = singlet.host.fields().servers;
    uscf.fields_mut().peer.init_upstream = Some(init_upstream);
    if let Some(host) = conf_of(singlet.host) {
        host.singlets = host.singlets.saturating_add(1);
        host.singlet_peers = host.singlet_peers.saturating_add(singlet.peers()?);
    }
    conf_of(uscf).ok_or(Refused::Logged)?.singlet = Some(singlet);
    Ok(())
}

impl Singlet {
    /// The singlet's servers, made from its host's.
    pub fn servers(&self) -> ConfResult<Vec<ngx_http_upstream_server_t>> {
        let host = self.host.servers();
        let host = host.get(..self.known.min(host.len())).unwrap_or_default();
        let Some(mut active) = host.get(self.active).copied() else {
            return Ok(Vec::new());
        };
        if !self.nobackup {
            active.set_backup(0);
            let others = host.iter().enumerate().map(|(n, server)| {
                if n == self.active {
                    active
                } else {
                    let mut server = *server;
                    server.set_backup(1);
                    server
                }
            });
            return collect(others);
        }
        // All others would be down: one such server in each part that they would stand in does
        // the same, whatever their number.
        let mut servers = collect([active])?;
        for backup in [0, 1] {
            let stands = |(n, server): (usize, &ngx_http_upstream_server_t)| {
                n != self.active && server.backup() == backup
            };
            if host.iter().enumerate().any(stands) {
                let mut down = self.down;
                down.set_backup(backup);
                push(&mut servers, down)?;
            }
        }
        Ok(servers)
    }

    /// The number of peers that the servers make in a zone.
    fn peers(&self) -> ConfResult<usize> {
        let servers = self.servers()?;
        let peers = servers.iter().map(|server| {
            if is_resolved(server) {
                RESOLVED
            } else {
                server.naddrs
            }
        });
        Ok(peers.sum())
    }
}

unsafe extern "C" fn init_upstream(
    cf: *mut ngx_conf_t,
    us: *mut ngx_http_upstream_srv_conf_t,
) -> ngx_int_t {
    // SAFETY: as nginx calls it.
    unsafe { callback::init_upstream(cf, us, init) }
}

fn init(conf: Conf, uscf: SrvConf) -> ConfResult<ngx_int_t> {
    let own = conf_of(uscf).ok_or(Refused::Logged)?;
    let singlet = own.singlet.as_ref().ok_or(Refused::Logged)?;

    inherit::take_over(conf, uscf, singlet)?;

    let init = uscf
        .fields()
        .peer
        .init_upstream
        .unwrap_or(ngx_http_upstream_init_round_robin);
    let rc = with_servers(uscf, singlet.servers()?, || {
        // SAFETY: as nginx calls it.
        unsafe { init(conf.as_ptr(), uscf.as_ptr()) }
    });
    Ok(rc)
}
