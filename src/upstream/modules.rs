//! The modules that have a say in `upstream{}`: their configurations and directives, used as nginx
//! uses them when it reads a block.

use core::ffi::{c_char, c_void, CStr};
use core::ptr::{self, NonNull};

use nginx_sys::{
    ngx_array_create, ngx_array_push, ngx_command_t, ngx_http_conf_ctx_t, ngx_http_module_t,
    ngx_module_t, ngx_str_t, ngx_uint_t, NGX_HTTP_MODULE, NGX_HTTP_UPS_CONF,
};

use crate::nginx::{bytes, Conf, ConfResult, Refused, SrvConf, Text, CONF_OK};

/// The modules that have a say in `upstream{}`.
pub fn all<'a>(conf: Conf) -> impl Iterator<Item = &'a ngx_module_t> {
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

/// The directives of a module.
pub fn commands(module: &ngx_module_t) -> impl Iterator<Item = &ngx_command_t> {
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

/// A module by its name; None: this nginx does not have it.
pub fn find<'a>(conf: Conf, name: &str) -> Option<&'a ngx_module_t> {
    all(conf).find(|module| {
        // SAFETY: ngx_preinit_modules() or load_module named each module.
        !module.name.is_null()
            && unsafe { CStr::from_ptr(module.name) }.to_bytes() == name.as_bytes()
    })
}

/// nginx's own modules that have a say in `upstream{}`, and this one: all keep round robin's peers.
const OWN: [&str; 10] = [
    "ngx_http_upstream_module",
    "ngx_http_upstream_hash_module",
    "ngx_http_upstream_ip_hash_module",
    "ngx_http_upstream_least_conn_module",
    "ngx_http_upstream_least_time_module",
    "ngx_http_upstream_random_module",
    "ngx_http_upstream_keepalive_module",
    "ngx_http_upstream_sticky_module",
    "ngx_http_upstream_zone_module",
    "ngx_http_combined_upstreams_module",
];

/// Whether modules of others have a say in `upstream{}`.
pub fn has_foreign_methods(conf: Conf) -> bool {
    all(conf).any(|module| {
        // SAFETY: as in find().
        let name = (!module.name.is_null()).then(|| unsafe { CStr::from_ptr(module.name) });
        !name.is_some_and(|name| OWN.iter().any(|own| name.to_bytes() == own.as_bytes()))
    })
}

/// Runs a directive of a module on an upstream, as if it stood in its block. False if this nginx
/// does not have it.
pub fn run(
    conf: Conf,
    uscf: SrvConf,
    module: &str,
    directive: &str,
    words: &[&[u8]],
) -> ConfResult<bool> {
    let Some(module) = find(conf, module) else {
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

/// Gives an upstream a module's configuration with nothing set yet.
pub fn create_conf(conf: Conf, uscf: SrvConf, module: &ngx_module_t) -> ConfResult {
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
