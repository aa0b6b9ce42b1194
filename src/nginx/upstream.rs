//! The upstream side of a request, and declared upstreams.

use core::ffi::c_void;
use core::ptr::NonNull;

use nginx_sys::{
    ngx_http_upstream_conf_t, ngx_http_upstream_server_t, ngx_http_upstream_srv_conf_t,
    ngx_http_upstream_t, ngx_module_t, ngx_uint_t, NGX_HTTP_UPSTREAM_CREATE,
};

use super::bytes;

extern "C" {
    fn ngx_http_cu_cache_status(u: *mut ngx_http_upstream_t) -> ngx_uint_t;
}

/// The upstream side of a request (`r->upstream`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Upstream(NonNull<ngx_http_upstream_t>);

/// nginx's number for a cache status; 0: there is none.
pub type CacheStatus = u8;

impl Upstream {
    /// # Safety
    ///
    /// `u` is NULL or the upstream of a live request.
    pub unsafe fn from_ptr(u: *mut ngx_http_upstream_t) -> Option<Upstream> {
        NonNull::new(u).map(Upstream)
    }

    /// The upstream itself.
    pub fn as_ptr(self) -> *mut ngx_http_upstream_t {
        self.0.as_ptr()
    }

    /// Its fields; borrowed for one expression only.
    pub fn fields(&self) -> &ngx_http_upstream_t {
        // SAFETY: it lives in the request's pool.
        unsafe { self.0.as_ref() }
    }

    /// Its fields, to be changed.
    #[allow(clippy::mut_from_ref)]
    pub fn fields_mut(&self) -> &mut ngx_http_upstream_t {
        // SAFETY: as above; one thread, and no borrow is held across an expression.
        unsafe { &mut *self.0.as_ptr() }
    }

    /// Whether the pass handler has made it, but not yet said how it is configured: it is
    /// evaluating the URL of its `*_pass`.
    pub fn is_asking(self) -> bool {
        self.fields().conf.is_null()
    }

    /// Whether it is not finalized.
    pub fn is_alive(self) -> bool {
        !self.fields().cleanup.is_null()
    }

    /// The pass's configuration.
    pub fn conf(&self) -> Option<&ngx_http_upstream_conf_t> {
        // SAFETY: it is NULL or outlives the request.
        unsafe { self.fields().conf.as_ref() }
    }

    /// The status of the answer at hand; an answer without a status line (HTTP/0.9) is a 200.
    pub fn status(self) -> u16 {
        match self.fields().headers_in.status_n {
            0 => 200,
            status => u16::try_from(status).unwrap_or(u16::MAX),
        }
    }

    /// What the cache was to the answer.
    pub fn cache_status(self) -> CacheStatus {
        // SAFETY: it lives in the request's pool.
        unsafe { ngx_http_cu_cache_status(self.as_ptr()) as CacheStatus }
    }
}

/// An entry of nginx's list of upstreams: declared, or made by nginx from a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SrvConf(NonNull<ngx_http_upstream_srv_conf_t>);

impl SrvConf {
    /// # Safety
    ///
    /// `uscf` is NULL or an upstream of a live configuration.
    pub unsafe fn from_ptr(uscf: *mut ngx_http_upstream_srv_conf_t) -> Option<SrvConf> {
        NonNull::new(uscf).map(SrvConf)
    }

    /// The entry itself.
    pub fn as_ptr(self) -> *mut ngx_http_upstream_srv_conf_t {
        self.0.as_ptr()
    }

    /// Its fields; borrowed for one expression only.
    pub fn fields(&self) -> &ngx_http_upstream_srv_conf_t {
        // SAFETY: the configuration is live.
        unsafe { self.0.as_ref() }
    }

    /// Its fields, to be changed while the configuration is read.
    #[allow(clippy::mut_from_ref)]
    pub fn fields_mut(&self) -> &mut ngx_http_upstream_srv_conf_t {
        // SAFETY: as above; no borrow is held across an expression.
        unsafe { &mut *self.0.as_ptr() }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        bytes(&self.fields().host)
    }

    /// Whether the configuration declares it, as opposed to a name out of a URL.
    pub fn is_declared(self) -> bool {
        self.fields().flags & NGX_HTTP_UPSTREAM_CREATE as usize != 0
    }

    /// Its servers, as they are now.
    pub fn servers(&self) -> &[ngx_http_upstream_server_t] {
        // SAFETY: `servers` is NULL or an array of servers.
        unsafe {
            self.fields()
                .servers
                .as_ref()
                .map_or(&[], |servers| servers.as_slice())
        }
    }

    /// A module's configuration of this upstream.
    pub fn conf<T>(self, module: &ngx_module_t) -> Option<NonNull<T>> {
        let confs = NonNull::new(self.fields().srv_conf)?;
        // SAFETY: srv_conf has a place for each HTTP module; the module keeps a T there.
        NonNull::new(unsafe { *confs.as_ptr().add(module.ctx_index) }.cast::<T>())
    }

    /// Sets a module's configuration of this upstream.
    pub fn set_conf(self, module: &ngx_module_t, conf: *mut c_void) {
        if let Some(confs) = NonNull::new(self.fields().srv_conf) {
            // SAFETY: as above.
            unsafe { *confs.as_ptr().add(module.ctx_index) = conf };
        }
    }
}
