//! What nginx.conf says: one file per family of directives.

mod dynamic;
mod names;
mod regex;
mod statuses;
mod upstrand;
mod zone;

pub use dynamic::{cmd_dynamic_upstrand, resolve_literals, Dynamic, Source};
pub use names::Names;
pub use upstrand::{
    check_unmatched, cmd_intercept_statuses, cmd_next_upstream_statuses, cmd_next_upstream_timeout,
    cmd_next_upstream_tries, cmd_order, cmd_upstrand, cmd_upstream, cmd_zone, Member, Upstrand,
};
pub use zone::check_sizes;

use core::cell::Cell;
use std::collections::HashMap;

use nginx_sys::{ngx_http_handler_pt, ngx_http_header_handler_pt, ngx_http_upstream_conf_t};

use crate::engine::Places;
use crate::nginx::memory::{lowercase, push};
use crate::nginx::ConfResult;
use crate::status::Format;
use crate::upstream::AddedBackups;
use crate::zone::Zone;

/// The module's part of http{}.
#[derive(Default)]
// Boxed where something points to them while the vectors grow.
#[allow(clippy::vec_box)]
pub struct MainConf {
    /// All upstrands; boxed, as variables and requests point to them.
    pub upstrands: Vec<Box<Upstrand>>,
    by_name: HashMap<Vec<u8>, usize>,
    /// Declared upstreams by name.
    pub names: Names,
    /// What `dynamic_upstrand` lines say.
    pub dynamic: Dynamic,
    /// The zones of upstrands; boxed, as nginx's zones point to them.
    pub zones: Vec<Box<Zone>>,
    unmatched: Vec<upstrand::Unmatched>,
    /// The `add_upstream` lines that gave backup servers.
    pub added_backups: Vec<AddedBackups>,
    /// Where nginx's list has which upstream.
    pub places: Places,
    /// Modules that are not nginx's have a say in `upstream{}`.
    pub foreign_methods: bool,
    /// nginx's handler of `X-Accel-Redirect`, which ours stands before.
    pub accel_redirect: ngx_http_header_handler_pt,
}

impl MainConf {
    /// The upstrand of a name; upper and lower case are the same.
    pub fn upstrand(&self, name: &[u8]) -> Option<&Upstrand> {
        match self.by_name.get(name) {
            Some(index) => self.upstrands.get(*index).map(Box::as_ref),
            // A client may choose the name: no memory is taken for it.
            None => self
                .upstrands
                .iter()
                .map(Box::as_ref)
                .find(|upstrand| upstrand.name_bytes().eq_ignore_ascii_case(name)),
        }
    }

    /// Whether there is an upstrand of this name.
    fn is_taken(&self, name: &[u8]) -> ConfResult<bool> {
        Ok(self.by_name.contains_key(&lowercase(name)?))
    }

    fn add_upstrand(&mut self, upstrand: Box<Upstrand>) -> ConfResult {
        let index = self.upstrands.len();
        self.by_name.try_reserve(1)?;
        self.by_name
            .insert(lowercase(upstrand.name_bytes())?, index);
        push(&mut self.upstrands, upstrand)
    }
}

/// The module's part of a location.
#[derive(Default)]
pub struct LocConf {
    /// For each variable of `dynamic_upstrand` in force here, the line that says where its value
    /// comes from.
    pub dynamic: Vec<(usize, usize)>,
    /// What `upstrand_status` answers here.
    pub status: Option<Format>,
    /// The handler of `upstrand_status` or `upstrand_api` that is in force here.
    pub handler: ngx_http_handler_pt,
    /// A pass's configuration without `*_intercept_errors`, made by a worker when it first needs
    /// it: the original and the copy.
    pub without_intercept:
        Cell<Option<(*mut ngx_http_upstream_conf_t, *mut ngx_http_upstream_conf_t)>>,
}

impl LocConf {
    /// Takes over what the level above says and this one does not.
    pub fn merge(&mut self, above: &LocConf) -> ConfResult {
        for (variable, line) in &above.dynamic {
            if !self.dynamic.iter().any(|(own, _)| own == variable) {
                push(&mut self.dynamic, (*variable, *line))?;
            }
        }
        Ok(())
    }
}
