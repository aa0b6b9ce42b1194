//! The configuration while it is read.

use core::ffi::c_char;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use nginx_sys::{
    ngx_conf_t, ngx_cycle_t, ngx_http_add_variable, ngx_http_conf_ctx_t, ngx_http_core_loc_conf_t,
    ngx_http_core_module, ngx_http_get_variable_index, ngx_http_module,
    ngx_http_upstream_main_conf_t, ngx_http_upstream_srv_conf_t, ngx_http_variable_t, ngx_log_t,
    ngx_module_t, ngx_parse_time, ngx_str_t, ngx_uint_t, NGX_LOG_EMERG, NGX_LOG_WARN,
    NGX_MAX_CONF_ERRSTR,
};

use super::{bytes, upstream_module, Pool, SrvConf, Text};

/// What a directive's handler returns when all is well.
pub const CONF_OK: *mut c_char = ptr::null_mut();

/// A directive was refused.
#[derive(Clone, Copy, Debug)]
pub enum Refused {
    /// The message has been logged, or memory is short.
    Logged,
    /// nginx says `"NAME" directive ...` with this text.
    Directive(&'static core::ffi::CStr),
}

/// What handling a directive comes to.
pub type ConfResult<T = ()> = Result<T, Refused>;

impl Refused {
    /// As a directive's handler returns it.
    pub fn as_ptr(self) -> *mut c_char {
        match self {
            // NGX_CONF_ERROR
            Refused::Logged => ptr::without_provenance_mut(usize::MAX),
            Refused::Directive(text) => text.as_ptr().cast_mut(),
        }
    }
}

/// A line of a configuration file, for messages that come later.
#[derive(Clone, Copy)]
pub struct Place {
    file: ngx_str_t,
    line: ngx_uint_t,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " in {}:{}", Text(bytes(&self.file)), self.line)
    }
}

/// Logs a message with the line that it is about. As `ngx_conf_log_error()` does, it cuts a long
/// message, so that the line is not lost.
pub fn log_at(level: u32, log: *mut ngx_log_t, place: Place, message: fmt::Arguments<'_>) {
    let mut room = [const { MaybeUninit::uninit() }; NGX_MAX_CONF_ERRSTR as usize];
    let message = ngx::log::write_fmt(&mut room, message);
    ngx::ngx_log_error!(level, log, "{}{place}", Text(message));
}

/// A time with any of nginx's units, in ms. `ngx_parse_time()` knows months and years among whole
/// seconds only, and milliseconds elsewhere only.
pub fn parse_msec(text: &[u8]) -> Option<u64> {
    let mut text = super::string(text);
    if text.len == 0 {
        return None;
    }
    let mut parse = |in_seconds| {
        // SAFETY: ngx_parse_time() reads the string only.
        let time = unsafe { ngx_parse_time(&mut text, in_seconds) };
        u64::try_from(time).ok()
    };
    parse(0).or_else(|| parse(1)?.checked_mul(1000))
}

/// The configuration being read.
#[derive(Clone, Copy)]
pub struct Conf(NonNull<ngx_conf_t>);

impl Conf {
    /// # Safety
    ///
    /// `cf` is what nginx gave to a configuration callback.
    pub unsafe fn from_ptr(cf: *mut ngx_conf_t) -> Option<Conf> {
        NonNull::new(cf).map(Conf)
    }

    /// The configuration itself.
    pub fn as_ptr(self) -> *mut ngx_conf_t {
        self.0.as_ptr()
    }

    /// Its fields; borrowed for one expression only.
    pub fn fields(&self) -> &ngx_conf_t {
        // SAFETY: valid as long as the callback runs.
        unsafe { self.0.as_ref() }
    }

    /// Its fields, to be changed.
    #[allow(clippy::mut_from_ref)]
    pub fn fields_mut(&self) -> &mut ngx_conf_t {
        // SAFETY: as above; no borrow is held across an expression.
        unsafe { &mut *self.0.as_ptr() }
    }

    /// The configuration's pool.
    pub fn pool(self) -> ConfResult<Pool> {
        // SAFETY: the pool lives as long as the configuration.
        unsafe { Pool::from_ptr(self.fields().pool) }.ok_or(Refused::Logged)
    }

    /// The log of the configuration.
    pub fn log(self) -> *mut ngx_log_t {
        self.fields().log
    }

    /// The words of the directive, its name first.
    pub fn args(&self) -> &[ngx_str_t] {
        // SAFETY: cf->args is an array of strings, which live in the configuration's pool.
        unsafe {
            self.fields()
                .args
                .as_ref()
                .map_or(&[], |args| args.as_slice())
        }
    }

    /// Word `n` of the directive; empty if there is none.
    pub fn arg(&self, n: usize) -> &[u8] {
        self.args().get(n).map_or(&[], bytes)
    }

    /// Where the directive stands.
    pub fn place(self) -> Place {
        // SAFETY: while a file is read conf_file describes it.
        match unsafe { self.fields().conf_file.as_ref() } {
            Some(file) => Place {
                file: file.file.name,
                line: file.line,
            },
            None => Place {
                file: ngx_str_t::empty(),
                line: 0,
            },
        }
    }

    /// Refuses the directive with a message, to which nginx adds file and line.
    pub fn refuse<T>(self, message: fmt::Arguments<'_>) -> ConfResult<T> {
        ngx::ngx_conf_log_error!(NGX_LOG_EMERG, self.as_ptr(), "{}", message);
        Err(Refused::Logged)
    }

    /// Refuses what an earlier line said.
    pub fn refuse_at<T>(self, place: Place, message: fmt::Arguments<'_>) -> ConfResult<T> {
        log_at(NGX_LOG_EMERG, self.log(), place, message);
        Err(Refused::Logged)
    }

    /// Warns of the directive at hand.
    pub fn warn(self, message: fmt::Arguments<'_>) {
        ngx::ngx_conf_log_error!(NGX_LOG_WARN, self.as_ptr(), "{}", message);
    }

    /// Warns of what an earlier line said.
    pub fn warn_at(self, place: Place, message: fmt::Arguments<'_>) {
        log_at(NGX_LOG_WARN, self.log(), place, message);
    }

    /// The contexts of http{}, or of the block at hand.
    fn ctx(&self) -> Option<&ngx_http_conf_ctx_t> {
        // SAFETY: inside http{} cf->ctx is a ngx_http_conf_ctx_t.
        unsafe { self.fields().ctx.cast::<ngx_http_conf_ctx_t>().as_ref() }
    }

    /// A module's main configuration.
    #[allow(clippy::mut_from_ref)]
    pub fn main_conf<T>(&self, module: &ngx_module_t) -> ConfResult<&mut T> {
        let confs = self.ctx().map_or(ptr::null_mut(), |ctx| ctx.main_conf);
        // SAFETY: main_conf has a place for each HTTP module; the module keeps a T there. No
        // borrow of it is held while nginx reads further directives.
        unsafe {
            confs
                .as_ref()
                .and_then(|_| (*confs.add(module.ctx_index)).cast::<T>().as_mut())
        }
        .ok_or(Refused::Logged)
    }

    /// The upstreams that the configuration has so far.
    pub fn upstreams(&self) -> impl Iterator<Item = SrvConf> + Clone + '_ {
        self.upstreams_from(0)
    }

    /// The same from number `first` on.
    pub fn upstreams_from(&self, first: usize) -> impl Iterator<Item = SrvConf> + Clone + '_ {
        let all: &[*mut ngx_http_upstream_srv_conf_t] =
            match self.main_conf::<ngx_http_upstream_main_conf_t>(upstream_module()) {
                // SAFETY: an array of pointers to upstreams.
                Ok(umcf) => unsafe { umcf.upstreams.as_slice() },
                Err(_) => &[],
            };
        // SAFETY: they live as long as the configuration.
        all.get(first..)
            .unwrap_or_default()
            .iter()
            .filter_map(|uscf| unsafe { SrvConf::from_ptr(*uscf) })
    }

    /// The `upstream{}` block at hand.
    pub fn upstream(&self) -> ConfResult<SrvConf> {
        let module = upstream_module();
        let confs = self.ctx().map_or(ptr::null_mut(), |ctx| ctx.srv_conf);
        // SAFETY: srv_conf has a place for each HTTP module.
        unsafe {
            confs
                .as_ref()
                .and_then(|_| SrvConf::from_ptr((*confs.add(module.ctx_index)).cast()))
        }
        .ok_or(Refused::Logged)
    }

    /// nginx's own configuration of the location at hand.
    #[allow(clippy::mut_from_ref)]
    pub fn core_location(&self) -> ConfResult<&mut ngx_http_core_loc_conf_t> {
        let confs = self.ctx().map_or(ptr::null_mut(), |ctx| ctx.loc_conf);
        // SAFETY: loc_conf has a place for each HTTP module.
        unsafe {
            let module = &*ptr::addr_of!(ngx_http_core_module);
            confs.as_ref().and_then(|_| {
                (*confs.add(module.ctx_index))
                    .cast::<ngx_http_core_loc_conf_t>()
                    .as_mut()
            })
        }
        .ok_or(Refused::Logged)
    }

    /// Adds a variable (`ngx_http_add_variable()`, which logs why it can't).
    #[allow(clippy::mut_from_ref)]
    pub fn add_variable(&self, name: &[u8], flags: u32) -> ConfResult<&mut ngx_http_variable_t> {
        let mut name = self.pool()?.copy(name).ok_or(Refused::Logged)?;
        // SAFETY: the name is in the configuration's pool.
        unsafe { ngx_http_add_variable(self.as_ptr(), &mut name, flags as ngx_uint_t).as_mut() }
            .ok_or(Refused::Logged)
    }

    /// The index under which a request keeps a variable (`ngx_http_get_variable_index()`).
    pub fn variable_index(self, name: &[u8]) -> ConfResult<ngx_uint_t> {
        let mut name = self.pool()?.copy(name).ok_or(Refused::Logged)?;
        // SAFETY: as above.
        let index = unsafe { ngx_http_get_variable_index(self.as_ptr(), &mut name) };
        ngx_uint_t::try_from(index).map_err(|_| Refused::Logged)
    }
}

/// A module's main configuration in a cycle.
///
/// # Safety
///
/// `cycle` is what nginx gave to a callback; the module keeps a T there.
pub unsafe fn cycle_main_conf<'a, T>(
    cycle: *mut ngx_cycle_t,
    module: &ngx_module_t,
) -> Option<&'a T> {
    // SAFETY: as the caller says. conf_ctx has a place for each module; without http{} ours is
    // empty.
    unsafe {
        let http = &*ptr::addr_of!(ngx_http_module);
        let ctx: *mut ngx_http_conf_ctx_t = (*(*cycle).conf_ctx.add(http.index)).cast();
        let ctx = ctx.as_ref()?;
        (*ctx.main_conf.add(module.ctx_index)).cast::<T>().as_ref()
    }
}
