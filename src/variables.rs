//! What `$upstrand_path` and its kin print, made from the records when they are read.

use nginx_sys::{
    ngx_http_request_t, ngx_http_upstream_state_t, ngx_int_t, ngx_msec_t, ngx_str_t,
    ngx_variable_value_t, NGX_HTTP_VAR_NOCACHEABLE,
};

use crate::engine::{note_evaluation, TryRecord, Walking};
use crate::nginx::{bytes, callback, fault, string, Conf, ConfResult, Pool, ERROR, OK};
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
            let walking = Walking::find(request).filter(|walking| has_tries(walking));
            let (Some(walking), Some((_, variable))) = (walking, TABLE.get(data)) else {
                value.not_found();
                return OK;
            };
            let Some(pool) = request.pool() else {
                return ERROR;
            };
            let mut out = Out::new(pool);
            print(&mut out, walking, *variable);
            match out.finish() {
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

/// A value in the making: on the stack while it is short, then in the request's pool.
struct Out {
    pool: Pool,
    short: [u8; SHORT],
    long: &'static mut [u8],
    len: usize,
    failed: bool,
}

const SHORT: usize = 256;

impl Out {
    fn new(pool: Pool) -> Out {
        Out {
            pool,
            short: [0; SHORT],
            long: &mut [],
            len: 0,
            failed: false,
        }
    }

    /// The value. None: memory is short.
    fn finish(self) -> Option<ngx_str_t> {
        if self.failed {
            return None;
        }
        if self.long.is_empty() {
            return self.pool.copy(self.short.get(..self.len)?);
        }
        Some(string(self.long.get(..self.len)?))
    }

    fn text(&mut self, text: &[u8]) {
        let end = self.len.saturating_add(text.len());
        let room = if self.long.is_empty() {
            self.short.get_mut(self.len..end)
        } else {
            self.long.get_mut(self.len..end)
        };
        match room {
            Some(room) => {
                room.copy_from_slice(text);
                self.len = end;
            }
            None => self.grow(text),
        }
    }

    fn grow(&mut self, text: &[u8]) {
        let end = self.len.saturating_add(text.len());
        let old: &[u8] = if self.long.is_empty() {
            &self.short
        } else {
            self.long
        };
        let old = old.get(..self.len).unwrap_or_default();
        let Some(long) = self.pool.items(end.saturating_mul(2)) else {
            self.failed = true;
            return;
        };
        for (to, from) in long.iter_mut().zip(old.iter().chain(text)) {
            *to = *from;
        }
        self.long = long;
        self.len = end;
    }

    /// A decimal number of at least `width` digits.
    fn number(&mut self, mut number: u64, width: usize) {
        let mut digits = [b'0'; 20];
        let mut first = digits.len();
        for (n, digit) in digits.iter_mut().enumerate().rev() {
            if number == 0 {
                break;
            }
            *digit = b'0'.wrapping_add((number % 10) as u8);
            number /= 10;
            first = n;
        }
        let first = first.min(digits.len().saturating_sub(width.max(1)));
        self.text(digits.get(first..).unwrap_or_default());
    }
}

fn print(out: &mut Out, walking: &Walking, variable: Variable) {
    fault::point("variables");
    match variable {
        Variable::Name => out.text(walking.upstrand().name_bytes()),
        Variable::Upstream => {
            if let Some(member) = walking.current() {
                out.text(bytes(&member.name));
            }
        }
        Variable::Tries => {
            let earlier = earlier(walking).map(|walk| walk.tries().len());
            let tries = earlier.fold(walking.tries().len(), usize::saturating_add);
            out.number(tries as u64, 1);
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

fn print_tries(out: &mut Out, last: &Walking, variable: Variable) {
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
    out: &mut Out,
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
        out.text(separator);
    }
    print_walk(out, walking, is_last, end, separator, variable);
}

/// A walk and, if it was the one that was intercepted, what answered instead; `end` is where the
/// states of the next walk begin.
fn print_walk(
    out: &mut Out,
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

fn print_try(
    out: &mut Out,
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
    out.text(b"(");
    out.text(bytes(&member.name));
    out.text(b") ");
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

fn print_reason(out: &mut Out, reason: Reason) {
    match reason {
        Reason::Http(status) => {
            out.text(b"http_");
            out.number(u64::from(status), 3);
        }
        _ => out.text(reason.word().as_bytes()),
    }
}

fn print_intercepted(
    out: &mut Out,
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

fn print_cache_status(out: &mut Out, status: u8) {
    let name = CACHE_STATUSES.get(usize::from(status)).unwrap_or(&"");
    out.text(name.as_bytes());
}

/// The servers of one upstream, as nginx prints them.
fn print_states(out: &mut Out, states: &[ngx_http_upstream_state_t], variable: Variable) {
    // A state without a peer is nginx's separator between upstreams.
    let servers = states.iter().filter(|state| !state.peer.is_null());
    for (n, state) in servers.enumerate() {
        if n > 0 {
            out.text(b", ");
        }
        match variable {
            Variable::Addr => {
                // SAFETY: a peer's name outlives the request that it was tried for.
                if let Some(peer) = unsafe { state.peer.as_ref() } {
                    out.text(bytes(peer));
                }
            }
            Variable::Status if state.status != 0 => out.number(state.status as u64, 3),
            Variable::Status => out.text(b"-"),
            Variable::ResponseLength => {
                out.number(u64::try_from(state.response_length).unwrap_or(0), 1);
            }
            Variable::ConnectTime => print_time(out, state.connect_time),
            Variable::HeaderTime => print_time(out, state.header_time),
            _ => print_time(out, state.response_time),
        }
    }
}

/// Seconds and milliseconds.
fn print_time(out: &mut Out, ms: ngx_msec_t) {
    if ms == ngx_msec_t::MAX {
        return out.text(b"-");
    }
    out.number((ms / 1000) as u64, 1);
    out.text(b".");
    out.number((ms % 1000) as u64, 3);
}
