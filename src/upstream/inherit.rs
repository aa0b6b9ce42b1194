//! What a singlet takes over from its host: method, keepalive, zone and resolver.

use nginx_sys::{
    ngx_conf_set_msec_slot, ngx_conf_set_num_slot, ngx_http_upstream_init_pt,
    ngx_http_upstream_init_round_robin, ngx_pagesize, ngx_shared_memory_add, ngx_shm_zone_t,
};

use super::modules::{self, commands, create_conf, run};
use super::singlets::{Singlet, FLAGS};
use super::{conf_of, extend};
use crate::nginx::{bytes, Conf, ConfResult, Refused, SrvConf, Text};

/// Bytes that a peer takes in a zone at most: nginx allocates each from the next power of two.
const PEER_IN_ZONE: usize = 1280;

/// Gives a singlet what its host has; the host is initialised.
pub fn take_over(conf: Conf, uscf: SrvConf, singlet: &Singlet) -> ConfResult {
    uscf.fields_mut().peer.init_upstream = None;
    take_method(conf, uscf, singlet)?;
    take_keepalive(conf, uscf, singlet.host)?;
    take_zone(conf, uscf, singlet.host)
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
    if let Some(module) = modules::find(conf, KEEPALIVE) {
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
/// nginx's headers; since 1.22 at least it begins with the number of connections, holds the
/// method that it wraps, and has at least these many words.
fn keepalive_words(conf: Conf, uscf: SrvConf) -> Option<[usize; 10]> {
    let module = modules::find(conf, KEEPALIVE)?;
    let words = uscf.conf::<[usize; 10]>(module)?;
    // SAFETY: as above; the configuration is live.
    Some(unsafe { *words.as_ptr() })
}

/// Gives the singlet its host's keepalive settings, by running its directives.
fn take_keepalive(conf: Conf, uscf: SrvConf, host: SrvConf) -> ConfResult {
    let words = (keepalive_words(conf, uscf), keepalive_words(conf, host));
    // From nginx 1.29.7 on the number is unset until the block says one, 0 included: an upstream
    // without a word keeps connections then, too.
    let (Some([unset, ..]), Some([connections, .., local])) = words else {
        return Ok(());
    };
    let Some(module) = modules::find(conf, KEEPALIVE) else {
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
    if connections != unset {
        let connections = conf
            .pool()?
            .write(|writer| writer.number(connections as u64));
        let connections = connections.ok_or(Refused::Logged)?;
        let words = [bytes(&connections), b"local"];
        let count = if unset != 0 && local == 1 { 2 } else { 1 };
        let words = words.get(..count).unwrap_or_default();
        run(conf, uscf, KEEPALIVE, "keepalive", words)?;
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
            let name = conf.pool()?.write(|writer| {
                writer.text(host.name());
                writer.text(b" singlets");
            });
            let mut name = name.ok_or(Refused::Logged)?;
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
