//! `combine_server_singlets [SUFFIX [WIDTH | byname]] [nobackup];`
//!
//! A singlet keeps what its host has. Its lines may stand below this directive, so a singlet is
//! only named here; it is finished when nginx initialises it, which is after its host.

use core::ffi::{c_char, c_void, CStr};
use core::ptr::{self, NonNull};
use std::collections::HashSet;

use nginx_sys::{
    ngx_array_create, ngx_array_push, ngx_command_t, ngx_conf_set_msec_slot, ngx_conf_set_num_slot,
    ngx_conf_t, ngx_http_conf_ctx_t, ngx_http_max_module, ngx_http_module_t, ngx_http_upstream_add,
    ngx_http_upstream_init_pt, ngx_http_upstream_init_round_robin, ngx_http_upstream_server_t,
    ngx_http_upstream_srv_conf_t, ngx_int_t, ngx_module_t, ngx_pagesize, ngx_shared_memory_add,
    ngx_shm_zone_t, ngx_str_t, ngx_uint_t, ngx_url_t, NGX_HTTP_MODULE, NGX_HTTP_UPSTREAM_BACKUP,
    NGX_HTTP_UPSTREAM_CREATE, NGX_HTTP_UPSTREAM_DOWN, NGX_HTTP_UPSTREAM_FAIL_TIMEOUT,
    NGX_HTTP_UPSTREAM_MAX_CONNS, NGX_HTTP_UPSTREAM_MAX_FAILS, NGX_HTTP_UPSTREAM_WEIGHT,
    NGX_HTTP_UPS_CONF,
};

use super::extend::{self, is_resolved};
use super::{conf_of, fake, with_servers};
use crate::nginx::{
    bytes, guard, lowercase, upstream_module, Conf, ConfResult, Place, Refused, SrvConf, Text,
    CONF_OK, ERROR,
};

/// The method lets servers change at run time.
#[cfg(upstream_resolve)]
use nginx_sys::NGX_HTTP_UPSTREAM_MODIFY;
#[cfg(not(upstream_resolve))]
const NGX_HTTP_UPSTREAM_MODIFY: u32 = 0;

/// Names longer than this come from a typo in WIDTH.
const WIDEST: usize = 4096;

/// What `upstream{}` allows for a round robin upstream.
const FLAGS: ngx_uint_t = (NGX_HTTP_UPSTREAM_CREATE
    | NGX_HTTP_UPSTREAM_MODIFY
    | NGX_HTTP_UPSTREAM_WEIGHT
    | NGX_HTTP_UPSTREAM_MAX_CONNS
    | NGX_HTTP_UPSTREAM_MAX_FAILS
    | NGX_HTTP_UPSTREAM_FAIL_TIMEOUT
    | NGX_HTTP_UPSTREAM_DOWN
    | NGX_HTTP_UPSTREAM_BACKUP) as ngx_uint_t;

/// Bytes that a peer takes in a zone at most: nginx allocates each from the next power of two.
const PEER_IN_ZONE: usize = 1280;
/// Addresses that a name resolved at run time is given room for.
const RESOLVED: usize = 16;

/// An upstream in which one server of its host is active.
pub struct Singlet {
    host: SrvConf,
    /// The host's servers that the singlet knows: those above the directive.
    known: usize,
    active: usize,
    nobackup: bool,
    place: Place,
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
    guard(Refused::Logged.as_ptr(), || {
        // SAFETY: as nginx calls it.
        let Some(conf) = (unsafe { Conf::from_ptr(cf) }) else {
            return Refused::Logged.as_ptr();
        };
        combine(conf).map_or_else(Refused::as_ptr, |()| CONF_OK)
    })
}

enum Tail {
    Number(usize),
    Name,
}

fn combine(conf: Conf) -> ConfResult {
    let host = conf.upstream()?;
    let words: Vec<&[u8]> = conf.args().iter().skip(1).map(bytes).collect();
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
        let tail = match tail {
            Tail::Number(width) => format!("{:0width$}", active.saturating_add(1)).into_bytes(),
            Tail::Name => host.servers().get(active).map_or_else(Vec::new, |server| {
                let colon_to_line = |byte: &u8| if *byte == b':' { b'_' } else { *byte };
                bytes(&server.name).iter().map(colon_to_line).collect()
            }),
        };
        let name = [host.name(), suffix, &tail].concat();
        let singlet = Singlet {
            host,
            known,
            active,
            nobackup,
            place: conf.place(),
            down,
        };
        declare(conf, &name, singlet)?;
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
fn declare(conf: Conf, name: &[u8], singlet: Singlet) -> ConfResult {
    let pool = conf.pool()?;
    // SAFETY: zeros are an empty ngx_url_t.
    let mut url: ngx_url_t = unsafe { core::mem::zeroed() };
    url.host = pool.copy(name).ok_or(Refused::Logged)?;
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
    for module in upstream_modules(conf) {
        create_conf(conf, uscf, module)?;
    }

    uscf.fields_mut().servers = singlet.host.fields().servers;
    uscf.fields_mut().peer.init_upstream = Some(init_upstream);
    if let Some(host) = conf_of(singlet.host) {
        host.singlets = host.singlets.saturating_add(1);
        host.singlet_peers = host.singlet_peers.saturating_add(singlet.peers());
    }
    conf_of(uscf).ok_or(Refused::Logged)?.singlet = Some(singlet);
    Ok(())
}

/// Gives a singlet a module's configuration with nothing set yet.
fn create_conf(conf: Conf, uscf: SrvConf, module: &ngx_module_t) -> ConfResult {
    // SAFETY: a HTTP module's ctx is a ngx_http_module_t.
    let create = unsafe { (*module.ctx.cast::<ngx_http_module_t>()).create_srv_conf };
    if let Some(create) = create {
        // SAFETY: as nginx calls it for upstream{}.
        let own = unsafe { create(conf.as_ptr()) };
        if own.is_null() {
            return Err(Refused::Logged);
        }
        uscf.set_conf(module, own);
    }
    Ok(())
}

/// The modules that have a say in `upstream{}`.
fn upstream_modules<'a>(conf: Conf) -> impl Iterator<Item = &'a ngx_module_t> {
    let mut next = 0usize;
    core::iter::from_fn(move || {
        // SAFETY: the modules of a cycle end with NULL.
        let module = unsafe { (*(*conf.fields().cycle).modules.add(next)).as_ref() };
        next = next.saturating_add(1);
        module
    })
    .filter(|module| module.type_ == NGX_HTTP_MODULE as ngx_uint_t)
    .filter(|module| {
        commands(module).any(|command| command.type_ & NGX_HTTP_UPS_CONF as ngx_uint_t != 0)
    })
}

fn commands(module: &ngx_module_t) -> impl Iterator<Item = &ngx_command_t> {
    let mut next = NonNull::new(module.commands);
    core::iter::from_fn(move || {
        // SAFETY: a table of commands ends with an empty name.
        let command = unsafe { next?.as_ref() };
        if command.name.len == 0 {
            return None;
        }
        // SAFETY: not the last one.
        next = next.map(|at| unsafe { at.add(1) });
        Some(command)
    })
}

impl Singlet {
    /// The singlet's servers, made from its host's.
    pub fn servers(&self) -> Vec<ngx_http_upstream_server_t> {
        let host = self.host.servers();
        let host = host.get(..self.known.min(host.len())).unwrap_or_default();
        let Some(mut active) = host.get(self.active).copied() else {
            return Vec::new();
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
            return others.collect();
        }
        // All others would be down: one such server in each part that they would stand in does
        // the same, whatever their number.
        let mut servers = vec![active];
        for backup in [0, 1] {
            let stands = |(n, server): (usize, &ngx_http_upstream_server_t)| {
                n != self.active && server.backup() == backup
            };
            if host.iter().enumerate().any(stands) {
                let mut down = self.down;
                down.set_backup(backup);
                servers.push(down);
            }
        }
        servers
    }

    /// The number of peers that the servers make in a zone.
    fn peers(&self) -> usize {
        self.servers()
            .iter()
            .map(|server| {
                if is_resolved(server) {
                    RESOLVED
                } else {
                    server.naddrs
                }
            })
            .sum()
    }
}

unsafe extern "C" fn init_upstream(
    cf: *mut ngx_conf_t,
    us: *mut ngx_http_upstream_srv_conf_t,
) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as nginx calls it.
        let (conf, uscf) = unsafe { (Conf::from_ptr(cf), SrvConf::from_ptr(us)) };
        match (conf, uscf) {
            (Some(conf), Some(uscf)) => init(conf, uscf).unwrap_or(ERROR),
            _ => ERROR,
        }
    })
}

fn init(conf: Conf, uscf: SrvConf) -> ConfResult<ngx_int_t> {
    let own = conf_of(uscf).ok_or(Refused::Logged)?;
    let singlet = own.singlet.as_ref().ok_or(Refused::Logged)?;
    let host = singlet.host;

    uscf.fields_mut().peer.init_upstream = None;
    take_method(conf, uscf, singlet)?;
    take_keepalive(conf, uscf, host)?;
    take_zone(conf, uscf, host)?;

    let init = uscf
        .fields()
        .peer
        .init_upstream
        .unwrap_or(ngx_http_upstream_init_round_robin);
    let rc = with_servers(uscf, singlet.servers(), || {
        // SAFETY: as nginx calls it.
        unsafe { init(conf.as_ptr(), uscf.as_ptr()) }
    });
    Ok(rc)
}

/// Gives the singlet its host's balancing method.
fn take_method(conf: Conf, uscf: SrvConf, singlet: &Singlet) -> ConfResult {
    if singlet.nobackup {
        // One server at work needs no balancing.
        return Ok(());
    }
    let host = singlet.host;
    // What the directive sets is known when it has been run.
    run(conf, uscf, KEEPALIVE, "keepalive", &[b"1"])?;
    let keepalive = address(uscf.fields().peer.init_upstream);
    uscf.fields_mut().peer.init_upstream = None;
    if let Some(module) = find_module(conf, KEEPALIVE) {
        create_conf(conf, uscf, module)?;
    }
    let has = |method: usize| is_method(conf, host, method, keepalive);
    let of_host = address(host.fields().peer.init_upstream);
    if of_host == 0 || has(address(Some(ngx_http_upstream_init_round_robin))) {
        return Ok(());
    }
    if run(
        conf,
        uscf,
        "ngx_http_upstream_least_conn_module",
        "least_conn",
        &[],
    )? {
        if has(address(uscf.fields().peer.init_upstream)) {
            return Ok(());
        }
        uscf.fields_mut().peer.init_upstream = None;
        uscf.fields_mut().flags = FLAGS;
    }
    if singlet.active == 0 {
        conf.warn_at(
            singlet.place,
            format_args!(
                "singlets of upstream \"{}\" use round robin instead of its balancing method",
                Text(host.name())
            ),
        );
    }
    Ok(())
}

fn address(init: ngx_http_upstream_init_pt) -> usize {
    init.map_or(0, |init| init as *const () as usize)
}

/// Whether the host uses this method, by itself or under its keepalive or `extend_single_peers`.
fn is_method(conf: Conf, host: SrvConf, method: usize, keepalive: usize) -> bool {
    let init = address(host.fields().peer.init_upstream);
    let extended = conf_of(host).map_or(0, |own| address(own.extended_init_upstream));
    let words = keepalive_words(conf, host).unwrap_or_default();
    let wrapped = |by: usize, method: usize| {
        (by == keepalive && words.contains(&method))
            || (by == extend::init_address() && extended == method)
    };
    init == method
        || wrapped(init, method)
        || (wrapped(init, extend::init_address()) && wrapped(extend::init_address(), method))
        || (wrapped(init, keepalive) && wrapped(keepalive, method))
}

const KEEPALIVE: &str = "ngx_http_upstream_keepalive_module";

/// The keepalive module's configuration of an upstream as plain words. Its structure is not in
/// nginx's headers; since its first version it begins with the number of connections, holds the
/// method that it wraps, and has at least these many words.
fn keepalive_words(conf: Conf, uscf: SrvConf) -> Option<[usize; 10]> {
    let module = find_module(conf, KEEPALIVE)?;
    let words = uscf.conf::<[usize; 10]>(module)?;
    // SAFETY: as above; the configuration is live.
    Some(unsafe { *words.as_ptr() })
}

/// Gives the singlet its host's keepalive settings, by running its directives.
fn take_keepalive(conf: Conf, uscf: SrvConf, host: SrvConf) -> ConfResult {
    let Some([connections, ..]) = keepalive_words(conf, host) else {
        return Ok(());
    };
    let Some(module) = find_module(conf, KEEPALIVE) else {
        return Ok(());
    };
    for command in commands(module) {
        let is_number = command.set.is_some_and(|set| {
            let set = set as *const () as usize;
            set == ngx_conf_set_msec_slot as *const () as usize
                || set == ngx_conf_set_num_slot as *const () as usize
        });
        let slots = (uscf.conf::<u8>(module), host.conf::<u8>(module));
        if let (true, (Some(to), Some(from))) = (is_number, slots) {
            // SAFETY: these handlers keep a word at this offset of the module's configuration.
            unsafe {
                let value = from.add(command.offset).cast::<usize>().read();
                to.add(command.offset).cast::<usize>().write(value);
            }
        }
    }
    if connections > 0 {
        let connections = connections.to_string();
        run(
            conf,
            uscf,
            KEEPALIVE,
            "keepalive",
            &[connections.as_bytes()],
        )?;
    }
    Ok(())
}

/// Puts the singlet into shared memory if its host is there: all singlets of a host into one zone
/// beside the host's, whose size the operator chose for the host alone.
fn take_zone(conf: Conf, uscf: SrvConf, host: SrvConf) -> ConfResult {
    #[cfg(upstream_resolve)]
    {
        uscf.fields_mut().resolver = host.fields().resolver;
        uscf.fields_mut().resolver_timeout = host.fields().resolver_timeout;
    }
    // SAFETY: a zone of the configuration at hand, or NULL.
    let Some(model) = (unsafe { host.fields().shm_zone.as_ref() }) else {
        return Ok(());
    };
    let own = conf_of(host).ok_or(Refused::Logged)?;
    let zone = match own.singlet_zone {
        Some(zone) => zone,
        None => {
            let peers = own
                .singlet_peers
                .saturating_add(own.singlets.saturating_mul(2));
            // SAFETY: set once, when nginx starts.
            let page = unsafe { ngx_pagesize };
            let size = peers
                .saturating_mul(PEER_IN_ZONE)
                .saturating_add(page.saturating_mul(16))
                .next_multiple_of(page);
            let name = [host.name(), b" singlets"].concat();
            let mut name = conf.pool()?.copy(&name).ok_or(Refused::Logged)?;
            // SAFETY: the name lives in the configuration's pool.
            let zone = unsafe { ngx_shared_memory_add(conf.as_ptr(), &mut name, size, model.tag) };
            share(zone, model).ok_or(Refused::Logged)?;
            own.singlet_zone = Some(zone);
            zone
        }
    };
    uscf.fields_mut().shm_zone = zone;
    Ok(())
}

/// Makes a zone one of nginx's for upstreams, as `zone` in `upstream{}` does.
fn share(zone: *mut ngx_shm_zone_t, model: &ngx_shm_zone_t) -> Option<()> {
    // SAFETY: ngx_shared_memory_add() made it, or returned NULL.
    let zone = unsafe { zone.as_mut() }?;
    zone.init = model.init;
    zone.data = model.data;
    zone.noreuse = model.noreuse;
    Some(())
}

fn find_module<'a>(conf: Conf, name: &str) -> Option<&'a ngx_module_t> {
    upstream_modules(conf).find(|module| {
        // SAFETY: ngx_preinit_modules() or load_module named each module.
        !module.name.is_null()
            && unsafe { CStr::from_ptr(module.name) }.to_bytes() == name.as_bytes()
    })
}

/// Runs a directive of a module on the singlet, as if it stood in its block. False if this nginx
/// does not have it.
fn run(
    conf: Conf,
    uscf: SrvConf,
    module: &str,
    directive: &str,
    words: &[&[u8]],
) -> ConfResult<bool> {
    let Some(module) = find_module(conf, module) else {
        return Ok(false);
    };
    let Some(command) = commands(module).find(|c| bytes(&c.name) == directive.as_bytes()) else {
        return Ok(false);
    };
    let Some(set) = command.set else {
        return Ok(false);
    };
    let pool = conf.pool()?;
    // SAFETY: a cf->ctx inside http{} is a ngx_http_conf_ctx_t.
    let outer = unsafe { conf.fields().ctx.cast::<ngx_http_conf_ctx_t>().as_ref() }
        .ok_or(Refused::Logged)?;
    let mut ctx = ngx_http_conf_ctx_t {
        main_conf: outer.main_conf,
        srv_conf: uscf.fields().srv_conf,
        loc_conf: outer.loc_conf,
    };
    // SAFETY: the pool is live.
    let args = unsafe {
        ngx_array_create(
            pool.as_ptr(),
            words.len().saturating_add(1),
            size_of::<ngx_str_t>(),
        )
    };
    for word in core::iter::once(directive.as_bytes()).chain(words.iter().copied()) {
        let word = pool.copy(word).ok_or(Refused::Logged)?;
        // SAFETY: a new element of the array.
        unsafe {
            let place = args
                .as_mut()
                .map(|args| ngx_array_push(args))
                .and_then(NonNull::new)
                .ok_or(Refused::Logged)?;
            place.cast::<ngx_str_t>().write(word);
        }
    }
    // SAFETY: ngx_conf_t is plain data that nginx itself copies so.
    let mut inner = unsafe { ptr::read(conf.as_ptr()) };
    inner.ctx = ptr::from_mut(&mut ctx).cast();
    inner.args = args;
    inner.cmd_type = NGX_HTTP_UPS_CONF as ngx_uint_t;
    let own = uscf
        .conf::<c_void>(module)
        .map_or(ptr::null_mut(), NonNull::as_ptr);
    // SAFETY: as nginx calls it when it reads the directive; it keeps neither `inner` nor `ctx`.
    let result: *mut c_char = unsafe { set(&mut inner, ptr::from_ref(command).cast_mut(), own) };
    if result == CONF_OK {
        return Ok(true);
    }
    if result == Refused::Logged.as_ptr() {
        return Err(Refused::Logged);
    }
    // SAFETY: otherwise it is a text, as nginx itself takes it.
    let text = unsafe { CStr::from_ptr(result) };
    conf.refuse(format_args!(
        "\"{}\" directive {} in singlet \"{}\"",
        directive,
        Text(text.to_bytes()),
        Text(uscf.name())
    ))
}

/// Gives upstreams whose names can't stand in a URL (`hostunix_/a`) another one for nginx's own
/// look-up, so that an upstrand can reach them. Nothing else could: a URL ends their name early.
pub fn make_reachable(conf: Conf) -> ConfResult {
    // A bracket in front begins an IPv6 address.
    let fits = |name: &[u8]| {
        !name.is_empty()
            && name.first() != Some(&b'[')
            && !name.iter().any(|byte| b"/:?#".contains(byte))
    };
    let all: Vec<SrvConf> = conf
        .upstreams()
        .iter()
        // SAFETY: upstreams of the configuration at hand.
        .filter_map(|uscf| unsafe { SrvConf::from_ptr(*uscf) })
        .collect();
    let misfits: Vec<SrvConf> = all
        .iter()
        .copied()
        .filter(|uscf| uscf.is_declared() && !fits(uscf.name()))
        .collect();
    if misfits.is_empty() {
        return Ok(());
    }
    let mut taken: HashSet<Box<[u8]>> = all.iter().map(|uscf| lowercase(uscf.name())).collect();
    for uscf in misfits {
        let to_line = |byte: &u8| if fits(&[*byte]) { *byte } else { b'_' };
        let mut name: Vec<u8> = uscf.name().iter().map(to_line).collect();
        while !taken.insert(lowercase(&name)) {
            name.push(b'_');
        }
        uscf.fields_mut().host = conf.pool()?.copy(&name).ok_or(Refused::Logged)?;
    }
    Ok(())
}
