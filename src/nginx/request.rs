//! Requests.

use core::ffi::c_void;
use core::ptr::NonNull;

use nginx_sys::{
    ngx_connection_t, ngx_http_log_ctx_t, ngx_http_post_request, ngx_http_posted_request_t,
    ngx_http_request_t, ngx_http_upstream_state_t, ngx_log_t, ngx_module_t, ngx_str_t,
    ngx_table_elt_t, ngx_uint_t, NGX_HTTP_LOCK, NGX_HTTP_PATCH, NGX_HTTP_POST,
};

use super::{bytes, Pool, Upstream};

extern "C" {
    fn ngx_http_cu_save(r: *mut ngx_http_request_t, saved: *mut SavedFlags);
    fn ngx_http_cu_restore(r: *mut ngx_http_request_t, saved: *const SavedFlags);
    fn ngx_http_cu_restore_error_page(r: *mut ngx_http_request_t, saved: *const SavedFlags);
    fn ngx_http_cu_header_only(r: *mut ngx_http_request_t) -> ngx_uint_t;
    fn ngx_http_cu_set_header_only(r: *mut ngx_http_request_t, value: ngx_uint_t);
    fn ngx_http_cu_set_disable_not_modified(r: *mut ngx_http_request_t, value: ngx_uint_t);
    fn ngx_http_cu_set_error_page(r: *mut ngx_http_request_t, value: ngx_uint_t);
    fn ngx_http_cu_request_body_no_buffering(r: *mut ngx_http_request_t) -> ngx_uint_t;
    fn ngx_http_cu_set_request_body_no_buffering(r: *mut ngx_http_request_t, value: ngx_uint_t);
    fn ngx_http_cu_reading_body(r: *mut ngx_http_request_t) -> ngx_uint_t;
    fn ngx_http_cu_background(r: *mut ngx_http_request_t) -> ngx_uint_t;
    #[cfg(ngx_feature = "http_cache")]
    fn ngx_http_cu_cached(r: *mut ngx_http_request_t) -> ngx_uint_t;
    fn ngx_http_cu_want_stale(r: *mut ngx_http_request_t);
    fn ngx_http_cu_stop_waiting(r: *mut ngx_http_request_t);
    fn ngx_http_cu_forget_slice(r: *mut ngx_http_request_t);
    fn ngx_http_cu_hold(r: *mut ngx_http_request_t);
}

/// The bit fields of a request, as src/shim.c saves them.
#[repr(C)]
pub struct SavedFlags([u64; 4]);

/// A request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Request(NonNull<ngx_http_request_t>);

impl Request {
    /// # Safety
    ///
    /// `r` is a request that nginx gave to a callback, and outlives the wrapper.
    pub unsafe fn from_ptr(r: *mut ngx_http_request_t) -> Option<Request> {
        NonNull::new(r).map(Request)
    }

    /// The request itself.
    pub fn as_ptr(self) -> *mut ngx_http_request_t {
        self.0.as_ptr()
    }

    /// The request's fields; borrowed for one expression only, as nginx changes them under us.
    pub fn fields(&self) -> &ngx_http_request_t {
        // SAFETY: the request is live.
        unsafe { self.0.as_ref() }
    }

    /// The request's fields, to be changed.
    #[allow(clippy::mut_from_ref)]
    pub fn fields_mut(&self) -> &mut ngx_http_request_t {
        // SAFETY: the request is live; a worker has one thread, and no other borrow of these
        // fields is held across an expression.
        unsafe { &mut *self.0.as_ptr() }
    }

    /// Whether this is a client's request, not a subrequest.
    pub fn is_main(self) -> bool {
        self.fields().main == self.as_ptr()
    }

    /// The request that this subrequest was made for.
    pub fn parent(self) -> Option<Request> {
        NonNull::new(self.fields().parent).map(Request)
    }

    /// The pool, shared by a client's request and all its subrequests.
    pub fn pool(self) -> Option<Pool> {
        // SAFETY: a request has a live pool.
        unsafe { Pool::from_ptr(self.fields().pool) }
    }

    /// The client's connection.
    pub fn connection(self) -> *mut ngx_connection_t {
        self.fields().connection
    }

    /// The log, which knows the client and the request.
    pub fn log(self) -> *mut ngx_log_t {
        // SAFETY: a request has a live connection.
        unsafe { (*self.connection()).log }
    }

    /// Makes this request the one that log lines of its connection speak of, as
    /// `ngx_http_set_log_request()` does.
    pub fn set_log_request(self) {
        // SAFETY: the data of a HTTP connection's log is a ngx_http_log_ctx_t.
        unsafe {
            let ctx: *mut ngx_http_log_ctx_t = (*self.log()).data.cast();
            if let Some(ctx) = ctx.as_mut() {
                ctx.current_request = self.as_ptr();
            }
        }
    }

    /// Whether the client went away.
    pub fn client_gone(self) -> bool {
        // SAFETY: a request has a live connection.
        unsafe { (*self.connection()).error() != 0 }
    }

    /// Saves the flags, of which an answer may change some.
    ///
    /// # Safety
    ///
    /// `place` is memory for them.
    pub unsafe fn save_flags(self, place: *mut SavedFlags) {
        // SAFETY: the request is live; as the caller says.
        unsafe { ngx_http_cu_save(self.as_ptr(), place) };
    }

    /// Sets the flags that an answer may change to what they were.
    pub fn restore_flags(self, saved: &SavedFlags) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_restore(self.as_ptr(), saved) };
    }

    /// Lets `error_page` act as it did when the flags were saved.
    pub fn restore_error_page(self, saved: &SavedFlags) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_restore_error_page(self.as_ptr(), saved) };
    }

    /// Whether no body is to be sent.
    pub fn is_header_only(self) -> bool {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_header_only(self.as_ptr()) != 0 }
    }

    /// Sends no body.
    pub fn set_header_only(self) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_set_header_only(self.as_ptr(), 1) };
    }

    /// Has no `If-Match` or the like decide about the answer.
    pub fn set_unconditional(self) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_set_disable_not_modified(self.as_ptr(), 1) };
    }

    /// Says whether `error_page` has acted, and does not act again.
    pub fn set_error_page(self, acted: bool) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_set_error_page(self.as_ptr(), acted.into()) };
    }

    /// Whether the body is passed on while it comes in.
    pub fn is_unbuffered(self) -> bool {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_request_body_no_buffering(self.as_ptr()) != 0 }
    }

    /// Has the body passed on while it comes in.
    pub fn set_unbuffered(self) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_set_request_body_no_buffering(self.as_ptr(), 1) };
    }

    /// Whether the client is still sending a body that is passed on while it comes in.
    pub fn is_reading_body(self) -> bool {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_reading_body(self.as_ptr()) != 0 }
    }

    /// Whether nginx has yet to read a body for the handler of the request.
    pub fn is_body_due(self) -> bool {
        let fields = self.fields();
        let headers = &fields.headers_in;
        self.is_main()
            && fields.request_body.is_null()
            && (headers.content_length_n > 0 || headers.chunked() != 0)
    }

    /// Whether nobody waits for this subrequest.
    pub fn is_background(self) -> bool {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_background(self.as_ptr()) != 0 }
    }

    /// Whether the answer came out of a cache.
    #[cfg(ngx_feature = "http_cache")]
    pub fn is_cached(self) -> bool {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_cached(self.as_ptr()) != 0 }
    }

    /// Whether the answer came out of a cache: this nginx has none.
    #[cfg(not(ngx_feature = "http_cache"))]
    pub fn is_cached(self) -> bool {
        false
    }

    /// Has nginx give a stale answer, if the cache has one, in place of an error.
    pub fn want_stale(self) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_want_stale(self.as_ptr()) };
    }

    /// Ends the wait for a cache entry that another request is filling.
    pub fn stop_waiting(self) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_stop_waiting(self.as_ptr()) };
    }

    /// Has nginx's `slice` begin anew, though it has seen the first slice.
    pub fn forget_slice(self) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_forget_slice(self.as_ptr()) };
    }

    /// Takes a reference, so that a later `NGX_DONE` leaves the request alive.
    pub fn hold(self) {
        // SAFETY: the request is live.
        unsafe { ngx_http_cu_hold(self.as_ptr()) };
    }

    /// Has `write_event_handler` run as soon as the event at hand is done with.
    ///
    /// # Safety
    ///
    /// `place` outlives the request's main request, and is not in use: what was posted with it
    /// before has run.
    pub unsafe fn post(self, place: *mut ngx_http_posted_request_t) {
        // SAFETY: the request is live; as the caller says. With a place it does not fail.
        unsafe { ngx_http_post_request(self.as_ptr(), place) };
    }

    /// Whether the method must not be repeated once it was sent: nginx's own rule.
    pub fn is_non_idempotent(self) -> bool {
        let methods = (NGX_HTTP_POST | NGX_HTTP_LOCK | NGX_HTTP_PATCH) as ngx_uint_t;
        self.fields().method & methods != 0
    }

    /// The first of the client's headers of this name, which is in lower case.
    pub fn header(&self, name: &[u8]) -> Option<&ngx_str_t> {
        let mut part = Some(&self.fields().headers_in.headers.part);
        while let Some(headers) = part {
            let slice: &[ngx_table_elt_t] = if headers.elts.is_null() {
                &[]
            } else {
                // SAFETY: the list holds `nelts` headers.
                unsafe { core::slice::from_raw_parts(headers.elts.cast(), headers.nelts) }
            };
            let found = slice
                .iter()
                .find(|header| bytes(&header.key).eq_ignore_ascii_case(name));
            if let Some(header) = found {
                return Some(&header.value);
            }
            // SAFETY: the next part of the list, or NULL.
            part = unsafe { headers.next.as_ref() };
        }
        None
    }

    /// The upstream side of the request.
    pub fn upstream(self) -> Option<Upstream> {
        // SAFETY: r->upstream is NULL or lives in the request's pool.
        unsafe { Upstream::from_ptr(self.fields().upstream) }
    }

    /// What was recorded of each server that was tried so far.
    pub fn states(&self) -> &[ngx_http_upstream_state_t] {
        // SAFETY: r->upstream_states is NULL or an array of states.
        unsafe {
            self.fields()
                .upstream_states
                .as_ref()
                .map_or(&[], |states| states.as_slice())
        }
    }

    /// The same, to be changed.
    #[allow(clippy::mut_from_ref)]
    pub fn states_mut(&self) -> &mut [ngx_http_upstream_state_t] {
        // SAFETY: as above; one thread, and no borrow is held across an expression.
        unsafe {
            self.fields()
                .upstream_states
                .as_mut()
                .map_or(&mut [], |states| states.as_slice_mut())
        }
    }

    /// The request's context of a module.
    pub fn ctx(self, module: &ngx_module_t) -> *mut c_void {
        // SAFETY: r->ctx has a place for each HTTP module of the running configuration.
        unsafe { *self.fields().ctx.add(module.ctx_index) }
    }

    /// Sets the request's context of a module.
    pub fn set_ctx(self, module: &ngx_module_t, ctx: *mut c_void) {
        // SAFETY: as above.
        unsafe { *self.fields().ctx.add(module.ctx_index) = ctx };
    }

    /// The main configuration of a module, of the configuration that serves this request.
    pub fn main_conf<T>(&self, module: &ngx_module_t) -> Option<&T> {
        // SAFETY: main_conf has a place for each HTTP module; the module keeps a T there.
        unsafe {
            (*self.fields().main_conf.add(module.ctx_index))
                .cast::<T>()
                .as_ref()
        }
    }

    /// A module's configuration of the request's location.
    pub fn loc_conf<T>(&self, module: &ngx_module_t) -> Option<&T> {
        // SAFETY: as above.
        unsafe {
            (*self.fields().loc_conf.add(module.ctx_index))
                .cast::<T>()
                .as_ref()
        }
    }
}
