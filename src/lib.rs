//! Failover across whole upstreams for nginx.
//!
//! This file is the module as nginx sees it: its directives, its life cycle, and the tables by
//! which nginx finds it. `conf` reads the directives, `upstream` is what happens inside
//! `upstream{}`, `engine` walks the upstreams of an upstrand, `zone` keeps what is known of them,
//! `variables` tells what happened to a request, and `status` what is going on.

mod conf;
mod engine;
mod nginx;
mod status;
mod upstream;
mod variables;
mod zone;

use core::ffi::{c_char, c_void};
use core::ptr;

use nginx_sys::{
    ngx_command_t, ngx_conf_t, ngx_cycle_t, ngx_http_module_t, ngx_int_t, ngx_module_t, ngx_str_t,
    ngx_uint_t, NGX_CONF_1MORE, NGX_CONF_2MORE, NGX_CONF_BLOCK, NGX_CONF_NOARGS, NGX_CONF_TAKE1,
    NGX_CONF_TAKE2, NGX_CONF_TAKE3, NGX_HTTP_LIF_CONF, NGX_HTTP_LOC_CONF, NGX_HTTP_LOC_CONF_OFFSET,
    NGX_HTTP_MAIN_CONF, NGX_HTTP_MODULE, NGX_HTTP_SRV_CONF, NGX_HTTP_SRV_CONF_OFFSET,
    NGX_HTTP_UPS_CONF, NGX_LOG_EMERG, NGX_MAIN_CONF,
};

use conf::{LocConf, MainConf};
use nginx::{guard, Conf, ConfResult, Refused, CONF_OK, ERROR, OK};
use upstream::UpstreamConf;

type Handler =
    unsafe extern "C" fn(*mut ngx_conf_t, *mut ngx_command_t, *mut c_void) -> *mut c_char;

const TAKE12: u32 = NGX_CONF_TAKE1 | NGX_CONF_TAKE2;
const TAKE123: u32 = TAKE12 | NGX_CONF_TAKE3;

const fn directive(name: &'static [u8], kind: u32, conf: usize, set: Handler) -> ngx_command_t {
    ngx_command_t {
        name: ngx_str_t {
            // nginx prints names up to the NUL.
            len: name.len().saturating_sub(1),
            data: name.as_ptr().cast_mut(),
        },
        type_: kind as ngx_uint_t,
        set: Some(set),
        conf,
        offset: 0,
        post: ptr::null_mut(),
    }
}

static mut COMMANDS: [ngx_command_t; 15] = [
    directive(
        b"add_upstream\0",
        NGX_HTTP_UPS_CONF | TAKE123,
        NGX_HTTP_SRV_CONF_OFFSET,
        upstream::cmd_add_upstream,
    ),
    directive(
        b"combine_server_singlets\0",
        NGX_HTTP_UPS_CONF | NGX_CONF_NOARGS | TAKE123,
        NGX_HTTP_SRV_CONF_OFFSET,
        upstream::cmd_combine_server_singlets,
    ),
    directive(
        b"extend_single_peers\0",
        NGX_HTTP_UPS_CONF | NGX_CONF_NOARGS,
        NGX_HTTP_SRV_CONF_OFFSET,
        upstream::cmd_extend_single_peers,
    ),
    directive(
        b"upstrand\0",
        NGX_HTTP_MAIN_CONF | NGX_CONF_BLOCK | NGX_CONF_TAKE1,
        0,
        conf::cmd_upstrand,
    ),
    // Inside upstrand{}; see conf/upstrand.rs for the context.
    directive(
        b"upstream\0",
        NGX_MAIN_CONF | TAKE123,
        0,
        conf::cmd_upstream,
    ),
    directive(b"order\0", NGX_MAIN_CONF | TAKE12, 0, conf::cmd_order),
    directive(
        b"next_upstream_statuses\0",
        NGX_MAIN_CONF | NGX_CONF_1MORE,
        0,
        conf::cmd_next_upstream_statuses,
    ),
    directive(
        b"next_upstream_timeout\0",
        NGX_MAIN_CONF | NGX_CONF_TAKE1,
        0,
        conf::cmd_next_upstream_timeout,
    ),
    directive(
        b"next_upstream_tries\0",
        NGX_MAIN_CONF | NGX_CONF_TAKE1,
        0,
        conf::cmd_next_upstream_tries,
    ),
    directive(
        b"intercept_statuses\0",
        NGX_MAIN_CONF | NGX_CONF_2MORE,
        0,
        conf::cmd_intercept_statuses,
    ),
    directive(b"zone\0", NGX_MAIN_CONF | TAKE12, 0, conf::cmd_zone),
    directive(
        b"dynamic_upstrand\0",
        NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_HTTP_LIF_CONF | NGX_CONF_2MORE,
        NGX_HTTP_LOC_CONF_OFFSET,
        conf::cmd_dynamic_upstrand,
    ),
    directive(
        b"upstrand_status\0",
        NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1,
        NGX_HTTP_LOC_CONF_OFFSET,
        status::cmd_upstrand_status,
    ),
    directive(
        b"upstrand_api\0",
        NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS,
        NGX_HTTP_LOC_CONF_OFFSET,
        status::cmd_upstrand_api,
    ),
    ngx_command_t::empty(),
];

static MODULE_CTX: ngx_http_module_t = ngx_http_module_t {
    preconfiguration: Some(preconfiguration),
    postconfiguration: Some(postconfiguration),
    create_main_conf: Some(create_conf::<MainConf>),
    init_main_conf: Some(init_main_conf),
    create_srv_conf: Some(create_conf::<UpstreamConf>),
    merge_srv_conf: None,
    create_loc_conf: Some(create_conf::<LocConf>),
    merge_loc_conf: Some(merge_loc_conf),
};

/// The module.
#[used]
#[allow(non_upper_case_globals)]
#[cfg_attr(not(feature = "export-modules"), no_mangle)]
pub static mut ngx_http_combined_upstreams_module: ngx_module_t = ngx_module_t {
    ctx: ptr::addr_of!(MODULE_CTX).cast_mut().cast(),
    commands: ptr::addr_of_mut!(COMMANDS).cast(),
    type_: NGX_HTTP_MODULE as ngx_uint_t,
    init_process: Some(init_process),
    ..ngx_module_t::default()
};

/// The module's description, for its indices.
pub(crate) fn module() -> &'static ngx_module_t {
    // SAFETY: nginx sets the indices when it loads the module, before anything else runs.
    unsafe { &*module_ptr() }
}

pub(crate) fn module_ptr() -> *mut ngx_module_t {
    ptr::addr_of_mut!(ngx_http_combined_upstreams_module)
}

unsafe extern "C" fn create_conf<T: Default>(cf: *mut ngx_conf_t) -> *mut c_void {
    guard(ptr::null_mut(), || {
        // SAFETY: as nginx calls it.
        unsafe { Conf::from_ptr(cf) }
            .and_then(|conf| conf.pool().ok()?.keep(T::default()))
            .map_or(ptr::null_mut(), |conf| conf.as_ptr().cast())
    })
}

unsafe extern "C" fn merge_loc_conf(
    cf: *mut ngx_conf_t,
    above: *mut c_void,
    own: *mut c_void,
) -> *mut c_char {
    guard(Refused::Logged.as_ptr(), || {
        // SAFETY: both came from create_conf().
        let (above, own) = unsafe {
            (
                above.cast::<LocConf>().as_ref(),
                own.cast::<LocConf>().as_mut(),
            )
        };
        if let (Some(above), Some(own)) = (above, own) {
            // SAFETY: as nginx calls it.
            let conf = unsafe { Conf::from_ptr(cf) }.ok_or(Refused::Logged);
            let merged = own
                .merge(above)
                .and_then(|()| status::inherit(conf?, above, own));
            return merged.map_or_else(Refused::as_ptr, |()| CONF_OK);
        }
        CONF_OK
    })
}

unsafe extern "C" fn preconfiguration(cf: *mut ngx_conf_t) -> ngx_int_t {
    nginx::log_panics();
    configure(cf, |conf| {
        if !nginx::bindings_fit() {
            ngx::ngx_log_error!(
                NGX_LOG_EMERG,
                conf.log(),
                "ngx_http_combined_upstreams_module was built with bindings that do not fit \
                 nginx's structures"
            );
            return Err(Refused::Logged);
        }
        variables::register(conf)
    })
}

/// Checks what can be told only once all is read. Not in postconfiguration(): by then the modules
/// before this one have begun to build the filter chains anew, and a master that refuses the
/// configuration would be left with half of them.
unsafe extern "C" fn init_main_conf(cf: *mut ngx_conf_t, _conf: *mut c_void) -> *mut c_char {
    let rc = configure(cf, |conf| {
        let main: &mut MainConf = conf.main_conf(module())?;
        conf::check_unmatched(conf, main)?;
        conf::resolve_literals(conf, main)?;
        upstream::check_backups(conf, main)?;
        conf::check_sizes(conf, main)
    });
    if rc == OK {
        CONF_OK
    } else {
        Refused::Logged.as_ptr()
    }
}

unsafe extern "C" fn postconfiguration(cf: *mut ngx_conf_t) -> ngx_int_t {
    configure(cf, |conf| {
        let main: &mut MainConf = conf.main_conf(module())?;
        engine::install_filter();
        engine::install_body_filter();
        main.foreign_methods = upstream::has_foreign_methods(conf);
        if main.upstrands.is_empty() {
            // Names of upstreams, headers and variables are nginx's own business then.
            return Ok(());
        }
        upstream::make_reachable(conf)?;
        engine::wrap_members(conf, main)?;
        engine::wrap_accel_redirect(conf, main)?;
        engine::wrap_cached_variables(conf)
    })
}

fn configure(cf: *mut ngx_conf_t, body: impl FnOnce(Conf) -> ConfResult) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as nginx calls it.
        match unsafe { Conf::from_ptr(cf) } {
            Some(conf) => body(conf).map_or(ERROR, |()| OK),
            None => ERROR,
        }
    })
}

/// Each worker draws its own turns.
unsafe extern "C" fn init_process(cycle: *mut ngx_cycle_t) -> ngx_int_t {
    guard(OK, || {
        // SAFETY: as nginx calls it.
        let main: Option<&MainConf> = unsafe { nginx::cycle_main_conf(cycle, module()) };
        for upstrand in main.iter().flat_map(|main| &main.upstrands) {
            if upstrand.zone.is_null() {
                upstrand.memory.shuffle(&upstrand.plan, 0);
            }
        }
        OK
    })
}

/// The tables by which `load_module` finds the module. The order puts its filter where nginx's own
/// build puts one of type HTTP_AUX_FILTER: above all that send something, below those that make
/// conditional answers.
#[cfg(feature = "export-modules")]
#[allow(non_upper_case_globals, missing_docs)]
mod exports {
    use core::ffi::c_char;
    use core::ptr;

    use nginx_sys::ngx_module_t;

    #[repr(transparent)]
    pub struct Names<const N: usize>([*const c_char; N]);

    // SAFETY: pointers to constants.
    unsafe impl<const N: usize> Sync for Names<N> {}

    #[no_mangle]
    pub static mut ngx_modules: [*mut ngx_module_t; 2] = [
        ptr::addr_of_mut!(super::ngx_http_combined_upstreams_module),
        ptr::null_mut(),
    ];

    #[no_mangle]
    pub static mut ngx_module_names: Names<2> =
        Names([c"ngx_http_combined_upstreams_module".as_ptr(), ptr::null()]);

    #[no_mangle]
    pub static mut ngx_module_order: Names<3> = Names([
        c"ngx_http_combined_upstreams_module".as_ptr(),
        c"ngx_http_copy_filter_module".as_ptr(),
        ptr::null(),
    ]);
}
