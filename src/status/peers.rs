//! An upstream's servers as nginx holds them.

use core::ffi::c_void;

use nginx_sys::{
    ngx_http_upstream_init_round_robin, ngx_http_upstream_srv_conf_t, ngx_pool_t, ngx_str_t,
    ngx_uint_t,
};
use serde::{Serialize, Serializer};

use super::state::State;
use crate::conf::MainConf;
use crate::nginx::{bytes, Pool, SrvConf, Text};
use crate::upstream::FAKE;

extern "C" {
    fn ngx_http_cu_peers(
        us: *mut ngx_http_upstream_srv_conf_t,
        pool: *mut ngx_pool_t,
        fake: *const ngx_str_t,
        out: *mut Peer,
        max: ngx_uint_t,
        tally: *mut Tally,
    );
}

/// How many servers an upstream has; the layout is src/shim.c's.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// All of them.
    pub total: ngx_uint_t,
    /// Those that the configuration marks down.
    pub down: ngx_uint_t,
    /// Those that round robin would send a request to.
    pub live: ngx_uint_t,
}

/// A server; the layout is src/shim.c's.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Peer {
    server: ngx_str_t,
    name: ngx_str_t,
    weight: ngx_uint_t,
    active: ngx_uint_t,
    max_conns: ngx_uint_t,
    fails: ngx_uint_t,
    max_fails: ngx_uint_t,
    fail_timeout: ngx_uint_t,
    backup: ngx_uint_t,
    down: ngx_uint_t,
    live: ngx_uint_t,
}

impl Peer {
    fn state(&self) -> State {
        match (self.down != 0, self.live != 0) {
            (true, _) => State::Down,
            (false, false) => State::Unavail,
            (false, true) => State::Up,
        }
    }
}

/// The servers of an upstream, as many of them as `room` takes. None for all if its method may keep
/// them in a way of its own.
pub fn read<'a>(
    main: &MainConf,
    uscf: SrvConf,
    pool: Pool,
    room: &'a mut [Peer],
) -> (&'a [Peer], Tally) {
    let mut tally = Tally::default();
    if !has_round_robin(main, uscf) {
        return (&[], tally);
    }
    let fake = crate::nginx::string(FAKE);
    // SAFETY: nginx's own methods, the only ones here, keep round robin's peers at `peer.data`; at
    // most `room.len()` servers are written.
    unsafe {
        ngx_http_cu_peers(
            uscf.as_ptr(),
            pool.as_ptr(),
            &fake,
            room.as_mut_ptr(),
            room.len(),
            &mut tally,
        );
    }
    (
        room.get(..tally.total.min(room.len())).unwrap_or(&[]),
        tally,
    )
}

/// Whether round robin's peers are what `peer.data` points to. Where modules that are not nginx's
/// have a say in `upstream{}`, that is sure without a method only.
fn has_round_robin(main: &MainConf, uscf: SrvConf) -> bool {
    let peer = &uscf.fields().peer;
    let init = peer.init_upstream.map_or(0, |f| f as usize);
    let is_plain =
        init == 0 || init == ngx_http_upstream_init_round_robin as *const c_void as usize;
    !peer.data.is_null() && (is_plain || !main.foreign_methods)
}

impl Serialize for Peer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct View<'a> {
            server: Shown<'a>,
            name: Shown<'a>,
            weight: usize,
            backup: bool,
            down: bool,
            state: State,
            active: usize,
            fails: usize,
            max_fails: usize,
            fail_timeout: usize,
            max_conns: usize,
        }
        View {
            server: Shown(bytes(&self.server)),
            name: Shown(bytes(&self.name)),
            weight: self.weight,
            backup: self.backup != 0,
            down: self.down != 0,
            state: self.state(),
            active: self.active,
            fails: self.fails,
            max_fails: self.max_fails,
            fail_timeout: self.fail_timeout,
            max_conns: self.max_conns,
        }
        .serialize(serializer)
    }
}

/// Bytes as a text of JSON.
pub struct Shown<'a>(pub &'a [u8]);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Text(self.0))
    }
}
