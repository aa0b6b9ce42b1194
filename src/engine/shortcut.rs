//! nginx looks for the upstream that a URL names by comparing the name with that of each upstream
//! in its list. Before a pass is given a name, the upstream is brought to the front of the list.
//!
//! This is sound where the answer of the search does not depend on the order: where a name and a
//! port are those of one entry at most. `ngx_http_upstream_add()` sees to it with one exception, and
//! there the list is left as it is. The list is the worker's own, and whoever else walks it at run
//! time finds the same entries in another order.

use core::cell::RefCell;
use std::collections::HashSet;

use nginx_sys::{ngx_http_upstream_main_conf_t, ngx_http_upstream_srv_conf_t};

use crate::conf::MainConf;
use crate::nginx::memory::{collect, lowercase};
use crate::nginx::{upstream_module, Conf, ConfResult, Request, SrvConf};
use crate::upstream::conf_of;

/// Which upstream stands where in nginx's list; both are numbered as in the configuration.
#[derive(Default)]
pub struct Places(RefCell<Lists>);

#[derive(Default)]
struct Lists {
    place_of: Vec<usize>,
    upstream_at: Vec<usize>,
}

impl Places {
    /// The list as the configuration made it; empty if it has to stay so.
    pub fn new(conf: Conf) -> ConfResult<Places> {
        if !is_order_free(conf)? {
            return Ok(Places::default());
        }
        let all = || collect(0..conf.upstreams().count());
        Ok(Places(RefCell::new(Lists {
            place_of: all()?,
            upstream_at: all()?,
        })))
    }
}

/// Whether a search finds the same in any order. An `upstream` block without a port matches its name
/// with any default port, and takes over an entry that a URL before it has made, but only one: after
/// `proxy_pass http://x` and `proxy_pass https://x` there are two for a name without a port.
fn is_order_free(conf: Conf) -> ConfResult<bool> {
    let has_port = |uscf: &SrvConf| uscf.fields().port != 0;
    let mut ported = conf.upstreams().filter(has_port).peekable();
    if ported.peek().is_none() {
        return Ok(true);
    }
    let mut any_port = HashSet::new();
    for uscf in conf.upstreams().filter(|uscf| !has_port(uscf)) {
        any_port.try_reserve(1)?;
        any_port.insert(lowercase(uscf.name())?);
    }
    for uscf in ported {
        if any_port.contains(&lowercase(uscf.name())?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Brings an upstream to the front of nginx's list.
pub fn bring_to_front(request: Request, uscf: SrvConf) {
    let main: Option<&MainConf> = request.main_conf(crate::module());
    let list: Option<&ngx_http_upstream_main_conf_t> = request.main_conf(upstream_module());
    if let (Some(main), Some(list)) = (main, list) {
        // SAFETY: an array of upstreams, which nobody is walking while a variable is evaluated.
        let list: &mut [*mut ngx_http_upstream_srv_conf_t] = unsafe {
            core::slice::from_raw_parts_mut(list.upstreams.elts.cast(), list.upstreams.nelts)
        };
        if list.first() == Some(&uscf.as_ptr()) {
            return;
        }
        if let Ok(mut lists) = main.places.0.try_borrow_mut() {
            if let Some(own) = conf_of(uscf) {
                swap(&mut lists, list, own.number, uscf);
            }
        }
    }
}

fn swap(
    lists: &mut Lists,
    list: &mut [*mut ngx_http_upstream_srv_conf_t],
    number: usize,
    uscf: SrvConf,
) -> Option<()> {
    let place = *lists.place_of.get(number)?;
    // Whatever another module may have done to the list: no swap on a wrong guess.
    if *list.get(place)? != uscf.as_ptr() {
        return None;
    }
    let first = *lists.upstream_at.first()?;
    list.swap(0, place);
    *lists.place_of.get_mut(number)? = 0;
    *lists.place_of.get_mut(first)? = place;
    *lists.upstream_at.get_mut(0)? = number;
    *lists.upstream_at.get_mut(place)? = first;
    Some(())
}
