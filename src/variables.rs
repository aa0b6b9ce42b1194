//! What `$upstrand_path` and its kin print, made from the records when they are read.

use core::fmt::{self, Write};

use nginx_sys::{
    ngx_http_request_t, ngx_http_upstream_state_t, ngx_int_t, ngx_msec_t, ngx_variable_value_t,
    NGX_HTTP_VAR_NOCACHEABLE,
};

use crate::engine::{note_evaluation, TryRecord, Walking};
use crate::nginx::{bytes, guard, Conf, ConfResult, Request, Text, Value, ERROR, OK};

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
    guard(ERROR, || {
        note_evaluation();
        // SAFETY: as nginx calls it.
        let (request, value) = unsafe { (Request::from_ptr(r), Value::from_ptr(v)) };
        let (Some(request), Some(value)) = (request, value) else {
            return ERROR;
        };
        let (Some(walking), Some((_, variable))) = (Walking::find(request), TABLE.get(data)) else {
            value.not_found();
            return OK;
        };
        let Some(pool) = request.pool() else {
            return ERROR;
        };
        let mut text = String::new();
        if print(&mut text, walking, *variable).is_err() {
            return ERROR;
        }
        match pool.copy(text.as_bytes()) {
            Some(text) => {
                value.set(text);
                OK
            }
            None => ERROR,
        }
    })
}

fn print(out: &mut String, walking: &Walking, variable: Variable) -> fmt::Result {
    match variable {
        Variable::Name => write!(out, "{}", Text(walking.upstrand().name_bytes())),
        Variable::Upstream => match walking.current() {
            Some(member) => write!(out, "{}", Text(bytes(&member.name))),
            None => Ok(()),
        },
        Variable::Tries => {
            let earlier = earlier(walking).map(|walk| walk.tries().len());
            let tries = earlier.fold(walking.tries().len(), usize::saturating_add);
            write!(out, "{tries}")
        }
        _ => print_tries(out, walking, variable),
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

fn print_tries(out: &mut String, last: &Walking, variable: Variable) -> fmt::Result {
    let mut walks: Vec<&Walking> = earlier(last).collect();
    walks.reverse();
    walks.push(last);

    let states = last.request.states();
    let separator = if matches!(variable, Variable::Path) {
        " -> "
    } else {
        " "
    };
    let mut first = true;
    let mut intercepted = false;
    for (n, walking) in walks.iter().enumerate() {
        let tries = walking.tries();
        for (m, record) in tries.iter().enumerate() {
            if !core::mem::take(&mut first) {
                out.push_str(separator);
            }
            let running = n.saturating_add(1) == walks.len() && m.saturating_add(1) == tries.len();
            print_try(
                out,
                walking,
                record,
                running && !walking.is_over(),
                states,
                variable,
            )?;
        }
        if walking.intercepted && !core::mem::replace(&mut intercepted, true) {
            out.push_str(separator);
            let from = tries.last().map_or(0, |record| record.end);
            let to = walks
                .get(n.saturating_add(1))
                .and_then(|next| next.tries().first())
                .map_or(states.len(), |record| record.first as usize);
            print_intercepted(out, last, range(states, from as usize, to), variable)?;
        }
    }
    Ok(())
}

fn range(
    states: &[ngx_http_upstream_state_t],
    from: usize,
    to: usize,
) -> &[ngx_http_upstream_state_t] {
    states.get(from..to.max(from)).unwrap_or_default()
}

fn print_try(
    out: &mut String,
    walking: &Walking,
    record: &TryRecord,
    running: bool,
    states: &[ngx_http_upstream_state_t],
    variable: Variable,
) -> fmt::Result {
    let Some(member) = walking.upstrand().members.get(record.member as usize) else {
        return Ok(());
    };
    let name = Text(bytes(&member.name));
    if matches!(variable, Variable::Path) {
        return write!(out, "{name}");
    }
    write!(out, "({name}) ")?;
    match variable {
        Variable::Reason => write!(out, "{}", record.reason),
        Variable::CacheStatus => {
            let status = if running {
                walking.request.upstream().map_or(0, |u| u.cache_status())
            } else {
                record.cache_status
            };
            print_cache_status(out, status);
            Ok(())
        }
        _ => {
            let end = if running {
                states.len()
            } else {
                record.end as usize
            };
            print_states(out, range(states, record.first as usize, end), variable)
        }
    }
}

fn print_intercepted(
    out: &mut String,
    walking: &Walking,
    states: &[ngx_http_upstream_state_t],
    variable: Variable,
) -> fmt::Result {
    if matches!(variable, Variable::Path) {
        out.push_str("<intercepted>");
        return Ok(());
    }
    out.push_str("(<intercepted>) ");
    match variable {
        Variable::Reason => Ok(()),
        Variable::CacheStatus => {
            if !states.is_empty() {
                print_cache_status(
                    out,
                    walking.request.upstream().map_or(0, |u| u.cache_status()),
                );
            }
            Ok(())
        }
        _ => print_states(out, states, variable),
    }
}

fn print_cache_status(out: &mut String, status: u8) {
    out.push_str(CACHE_STATUSES.get(usize::from(status)).unwrap_or(&""));
}

/// The servers of one upstream, as nginx prints them.
fn print_states(
    out: &mut String,
    states: &[ngx_http_upstream_state_t],
    variable: Variable,
) -> fmt::Result {
    // A state without a peer is nginx's separator between upstreams.
    let servers = states.iter().filter(|state| !state.peer.is_null());
    for (n, state) in servers.enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        match variable {
            Variable::Addr => {
                // SAFETY: a peer's name outlives the request that it was tried for.
                if let Some(peer) = unsafe { state.peer.as_ref() } {
                    write!(out, "{}", Text(bytes(peer)))?;
                }
            }
            Variable::Status if state.status != 0 => write!(out, "{}", state.status)?,
            Variable::Status => out.push('-'),
            Variable::ResponseLength => write!(out, "{}", state.response_length)?,
            Variable::ConnectTime => print_time(out, state.connect_time)?,
            Variable::HeaderTime => print_time(out, state.header_time)?,
            _ => print_time(out, state.response_time)?,
        }
    }
    Ok(())
}

fn print_time(out: &mut String, ms: ngx_msec_t) -> fmt::Result {
    if ms == ngx_msec_t::MAX {
        out.push('-');
        return Ok(());
    }
    write!(out, "{}.{:03}", ms / 1000, ms % 1000)
}
