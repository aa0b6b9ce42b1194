//! What `$upstrand_path` and its kin print, made from the records when they are read.

use nginx_sys::{
    ngx_http_request_t, ngx_http_upstream_state_t, ngx_int_t, ngx_str_t, ngx_variable_value_t,
    NGX_HTTP_VAR_NOCACHEABLE,
};

use crate::engine::{note_evaluation, TryRecord, Walking};
use crate::nginx::{bytes, callback, fault, string, Conf, ConfResult, Writer, ERROR, OK};
use walk::Reason;

/// The variables, in the order of the table.
#[derive(Clone, Copy)]
enum Variable {
    Path,
    Addr,
    CacheStatus,
    ConnectTime,
    HeaderTime,
    ResponseLength,
    ResponseTime,
    Status,
    Name,
    Upstream,
    Tries,
    Reason,
}

const TABLE: [(&[u8], Variable); 12] = [
    (b"upstrand_path", Variable::Path),
    (b"upstrand_addr", Variable::Addr),
    (b"upstrand_cache_status", Variable::CacheStatus),
    (b"upstrand_connect_time", Variable::ConnectTime),
    (b"upstrand_header_time", Variable::HeaderTime),
    (b"upstrand_response_length", Variable::ResponseLength),
    (b"upstrand_response_time", Variable::ResponseTime),
    (b"upstrand_status", Variable::Status),
    (b"upstrand_name", Variable::Name),
    (b"upstrand_upstream", Variable::Upstream),
    (b"upstrand_tries", Variable::Tries),
    (b"upstrand_reason", Variable::Reason),
];

/// nginx's names of cache statuses, by number (`ngx_http_cache_status`).
const CACHE_STATUSES: [&str; 8] = [
    "",
    "MISS",
    "BYPASS",
    "EXPIRED",
    "STALE",
    "UPDATING",
    "REVALIDATED",
    "HIT",
];

/// Registers the variables.
pub fn register(conf: Conf) -> ConfResult {
    for (number, (name, _)) in TABLE.iter().enumerate() {
        let variable = conf.add_variable(name, NGX_HTTP_VAR_NOCACHEABLE)?;
        variable.get_handler = Some(evaluate);
        variable.data = number;
    }
    Ok(())
}

unsafe extern "C" fn evaluate(
    r: *mut ngx_http_request_t,
    v: *mut ngx_variable_value_t,
    data: usize,
) -> ngx_int_t {
    note_evaluation();
    // SAFETY: as nginx calls it.
    unsafe {
        callback::variable(r, v, |request, value| {
            fault::point("variables");
            let walking = Walking::find(request).filter(|walking| has_tries(walking));
            let (Some(walking), Some((_, variable))) = (walking, TABLE.get(data)) else {
                value.not_found();
                return OK;
            };
            match text_of(walking, *variable) {
                Some(text) => {
                    value.set(text);
                    OK
                }
                None => ERROR,
            }
        })
    }
}

/// Whether the request has asked an upstream, or is about to.
fn has_tries(walking: &Walking) -> bool {
    !walking.tries().is_empty() || earlier(walking).any(|walk| !walk.tries().is_empty())
}

/// The value of a variable. None: memory is short.
fn text_of(walking: &Walking, variable: Variable) -> Option<ngx_str_t> {
    match variable {
        Variable::Name => return Some(string(walking.upstrand().name_bytes())),
        Variable::Upstream => {
            let member = walking.current();
            return Some(member.map_or(ngx_str_t::empty(), |member| member.name));
        }
        Variable::Tries => {
            let earlier = earlier(walking).map(|walk| walk.tries().len());
            let tries = earlier.fold(walking.tries().len(), usize::saturating_add);
            if let Some(digit) = b"0123456789".get(tries..tries.saturating_add(1)) {
                return Some(string(digit));
            }
            return walking
                .request
                .pool()?
                .write(|out| out.number(tries as u64));
        }
        _ => (),
    }
    let pool = walking.request.pool()?;
    let Some(record) = only_try(walking) else {
        return pool.write(|out| print_tries(out, walking, variable));
    };
    if matches!(variable, Variable::Path) {
        let member = walking.upstrand().members.get(record.member as usize);
        return Some(member.map_or(ngx_str_t::empty(), |member| member.name));
    }
    let states = walking.request.states();
    pool.write(|out| print_try(out, walking, record, false, states, variable))
}

/// The request's only try, if nothing else is to be printed: that is how nearly all requests end.
fn only_try(walking: &Walking) -> Option<&TryRecord> {
    match walking.tries() {
        [record] if walking.is_over() && walking.previous.is_null() && !walking.intercepted => {
            Some(record)
        }
        _ => None,
    }
}

/// The walks before this one, the last first.
fn earlier<'a>(walking: &Walking) -> impl Iterator<Item = &'a Walking> {
    let mut previous = walking.previous;
    core::iter::from_fn(move || {
        // SAFETY: a walk of the same request, in its pool, or NULL.
        let walking: &Walking = unsafe { previous.as_ref() }?;
        previous = walking.previous;
        Some(walking)
    })
}

#[inline(never)]
fn print_tries(out: &mut Writer, last: &Walking, variable: Variable) {
    let states = last.request.states();
    let separator: &[u8] = if matches!(variable, Variable::Path) {
        b" -> "
    } else {
        b" "
    };
    print_walks(out, last, true, states.len(), separator, variable);
}

/// The walks of a request up to this one, the first of them first; `end` is where the states of
/// the next one begin.
fn print_walks(
    out: &mut Writer,
    walking: &Walking,
    is_last: bool,
    end: usize,
    separator: &[u8],
    variable: Variable,
) {
    // SAFETY: an earlier walk of the same request, in its pool, or NULL.
    if let Some(previous) = unsafe { walking.previous.as_ref() } {
        let first = walking
            .tries()
            .first()
            .map_or(end, |try_| try_.first as usize);
        print_walks(out, previous, false, first, separator, variable);
        if walking.tries().is_empty() {
            // It has asked nobody.
            return;
        }
        out.text(separator);
    }
    print_walk(out, walking, is_last, end, separator, variable);
}

/// A walk and, if it was the one that was intercepted, what answered instead; `end` is where the
/// states of the next walk begin.
fn print_walk(
    out: &mut Writer,
    walking: &Walking,
    is_last: bool,
    end: usize,
    separator: &[u8],
    variable: Variable,
) {
    let states = walking.request.states();
    let tries = walking.tries();
    for (n, record) in tries.iter().enumerate() {
        if n > 0 {
            out.text(separator);
        }
        let running = is_last && !walking.is_over() && n.saturating_add(1) == tries.len();
        print_try(out, walking, record, running, states, variable);
    }
    // SAFETY: a walk of the same request, in its pool, or NULL.
    let before = unsafe { walking.previous.as_ref() }.is_some_and(|walk| walk.intercepted);
    if walking.intercepted && !before {
        out.text(separator);
        let from = tries.last().map_or(0, |record| record.end);
        print_intercepted(out, walking, range(states, from as usize, end), variable);
    }
}

fn range(
    states: &[ngx_http_upstream_state_t],
    from: usize,
    to: usize,
) -> &[ngx_http_upstream_state_t] {
    states.get(from..to.max(from)).unwrap_or_default()
}

#[inline(always)]
fn print_try(
    out: &mut Writer,
    walking: &Walking,
    record: &TryRecord,
    running: bool,
    states: &[ngx_http_upstream_state_t],
    variable: Variable,
) {
    let Some(member) = walking.upstrand().members.get(record.member as usize) else {
        return;
    };
    if matches!(variable, Variable::Path) {
        return out.text(bytes(&member.name));
    }
    out.bracketed(bytes(&member.name));
    match variable {
        Variable::Reason => print_reason(out, record.reason),
        Variable::CacheStatus => {
            let status = if running {
                walking.request.upstream().map_or(0, |u| u.cache_status())
            } else {
                record.cache_status
            };
            print_cache_status(out, status);
        }
        _ => {
            let end = if running {
                states.len()
            } else {
                record.end as usize
            };
            print_states(out, range(states, record.first as usize, end), variable);
        }
    }
}

fn print_reason(out: &mut Writer, reason: Reason) {
    match reason {
        Reason::Http(status) => {
            out.text(b"http_");
            out.three_digits(u64::from(status));
        }
        _ => out.text(reason.word().as_bytes()),
    }
}

fn print_intercepted(
    out: &mut Writer,
    walking: &Walking,
    states: &[ngx_http_upstream_state_t],
    variable: Variable,
) {
    if matches!(variable, Variable::Path) {
        return out.text(b"<intercepted>");
    }
    out.text(b"(<intercepted>) ");
    match variable {
        Variable::Reason => (),
        Variable::CacheStatus if states.is_empty() => (),
        Variable::CacheStatus => print_cache_status(
            out,
            walking.request.upstream().map_or(0, |u| u.cache_status()),
        ),
        _ => print_states(out, states, variable),
    }
}

fn print_cache_status(out: &mut Writer, status: u8) {
    let name = CACHE_STATUSES.get(usize::from(status)).unwrap_or(&"");
    out.text(name.as_bytes());
}

/// The servers of one upstream, as nginx prints them.
#[inline(always)]
fn print_states(out: &mut Writer, states: &[ngx_http_upstream_state_t], variable: Variable) {
    match states {
        [state] if !state.peer.is_null() => print_state(out, state, variable),
        _ => print_servers(out, states, variable),
    }
}

fn print_servers(out: &mut Writer, states: &[ngx_http_upstream_state_t], variable: Variable) {
    // A state without a peer is nginx's separator between upstreams.
    let servers = states.iter().filter(|state| !state.peer.is_null());
    for (n, state) in servers.enumerate() {
        if n > 0 {
            out.text(b", ");
        }
        print_state(out, state, variable);
    }
}

#[inline(always)]
fn print_state(out: &mut Writer, state: &ngx_http_upstream_state_t, variable: Variable) {
    match variable {
        Variable::Addr => {
            // SAFETY: a peer's name outlives the request that it was tried for.
            if let Some(peer) = unsafe { state.peer.as_ref() } {
                out.text(bytes(peer));
            }
        }
        Variable::Status if state.status != 0 => out.three_digits(state.status as u64),
        Variable::Status => out.text(b"-"),
        Variable::ResponseLength => {
            out.number(u64::try_from(state.response_length).unwrap_or(0));
        }
        Variable::ConnectTime => out.seconds(state.connect_time),
        Variable::HeaderTime => out.seconds(state.header_time),
        _ => out.seconds(state.response_time),
    }
}
