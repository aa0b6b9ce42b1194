//! `upstrand NAME { ... }` and the directives inside.
//!
//! The block has no context of its own among nginx's: inside it only those directives of HTTP
//! modules are known that are marked with NGX_MAIN_CONF, and that are just the ones below, as the
//! main context takes no directive of an HTTP module. `include` is marked so too.

use core::ffi::{c_char, c_void};
use core::ptr;
use std::collections::HashSet;

use nginx_sys::{
    ngx_command_t, ngx_conf_parse, ngx_conf_t, ngx_http_compile_complex_value,
    ngx_http_compile_complex_value_t, ngx_http_complex_value_t, ngx_shm_zone_t, ngx_str_t,
    NGX_HTTP_VAR_NOCACHEABLE, NGX_MAIN_CONF,
};
use walk::{Order, Plan, Statuses, Word};

use super::regex::Regex;
use super::{statuses, zone, MainConf};
use crate::engine;
use crate::nginx::memory::{boxed, collect, push};
use crate::nginx::{
    bytes, callback, fault, parse_msec, Conf, ConfResult, Place, Refused, SrvConf, Text, CONF_OK,
};
use crate::zone::Memory;

/// An upstream in an upstrand.
pub struct Member {
    /// Its name, as logs and variables show it.
    pub name: ngx_str_t,
    /// The upstream.
    pub uscf: SrvConf,
    /// Its `tier=`; 0: a normal upstream, 1: `backup`.
    pub tier: u32,
}

/// A line of `intercept_statuses`.
pub struct Intercept {
    /// The answers that it takes.
    pub statuses: Statuses,
    /// The URI or named location that answers instead.
    pub uri: *mut ngx_http_complex_value_t,
}

/// An upstrand.
pub struct Upstrand {
    /// Its name.
    pub name: ngx_str_t,
    /// Its upstreams, sorted by tier.
    pub members: Vec<Member>,
    /// The order of visiting them.
    pub plan: Plan,
    /// The answers after which a walk goes on.
    pub failures: Statuses,
    /// The answers that are intercepted, in the order of the lines.
    pub intercepts: Vec<Intercept>,
    /// Some list tells nginx's 502 for an answer that could not be parsed from its others.
    pub tells_invalid_header: bool,
    /// `next_upstream_timeout` in ms; 0: none.
    pub timeout: u64,
    /// Marks and turns.
    pub memory: Memory,
    /// The zone that they are shared in, or NULL.
    pub zone: *mut ngx_shm_zone_t,
}

impl Upstrand {
    /// Its name.
    pub fn name_bytes(&self) -> &[u8] {
        bytes(&self.name)
    }

    /// The name of the zone that its state is shared in.
    pub fn zone_name(&self) -> Option<&[u8]> {
        // SAFETY: NULL, or a zone that lives as long as the configuration.
        unsafe { self.zone.as_ref() }.map(|zone| bytes(&zone.shm.name))
    }
}

/// A regex that no upstream above it matches.
pub struct Unmatched {
    regex: Regex,
    upstrand: ngx_str_t,
    place: Place,
}

/// An upstream of the block while it is read.
struct Listed {
    uscf: SrvConf,
    tier: u32,
    interval: u64,
    /// Its place in the block.
    line: usize,
}

/// The block while it is read.
struct Block {
    name: ngx_str_t,
    members: Vec<Listed>,
    known: HashSet<*mut c_void>,
    unmatched: Vec<Unmatched>,
    order: Option<Order>,
    failures: Statuses,
    failure_words: Vec<Word>,
    intercepts: Vec<Intercept>,
    intercepted: Statuses,
    timeout: Option<u64>,
    tries: Option<u32>,
    zone: *mut ngx_shm_zone_t,
}

/// `upstrand NAME { ... }`
///
/// # Safety
///
/// Called by nginx while it reads a configuration.
pub unsafe extern "C" fn cmd_upstrand(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: as nginx calls it.
    unsafe { callback::directive(cf, read_block) }
}

fn read_block(conf: Conf) -> ConfResult {
    fault::point("conf");
    let main: &mut MainConf = conf.main_conf(crate::module())?;
    // The directive's words are gone once the block is read, so the name is copied.
    let name = conf.pool()?.copy(conf.arg(1)).ok_or(Refused::Logged)?;
    if name.len == 0 {
        return conf.refuse(format_args!("invalid upstrand name \"\""));
    }
    if main.is_taken(bytes(&name))? {
        return conf.refuse(format_args!(
            "duplicate upstrand \"{}\"",
            Text(bytes(&name))
        ));
    }

    let variable = conf.pool()?.write(|writer| {
        writer.text(b"upstrand_");
        writer.text(bytes(&name));
    });
    let variable = variable.ok_or(Refused::Logged)?;
    let variable = conf.add_variable(bytes(&variable), NGX_HTTP_VAR_NOCACHEABLE)?;
    if variable.get_handler.is_some() {
        return conf.refuse(format_args!(
            "the duplicate \"upstrand_{}\" variable",
            Text(bytes(&name))
        ));
    }

    let mut block = Block {
        name,
        members: Vec::new(),
        known: HashSet::new(),
        unmatched: Vec::new(),
        order: None,
        failures: Statuses::default(),
        failure_words: Vec::new(),
        intercepts: Vec::new(),
        intercepted: Statuses::default(),
        timeout: None,
        tries: None,
        zone: ptr::null_mut(),
    };
    parse(conf, &mut block)?;

    let upstrand = boxed(finish(conf, block)?)?;
    variable.get_handler = Some(engine::upstrand_variable);
    variable.data = ptr::from_ref(upstrand.as_ref()) as usize;
    conf.main_conf::<MainConf>(crate::module())?
        .add_upstrand(upstrand)
}

fn parse(conf: Conf, block: &mut Block) -> ConfResult {
    // SAFETY: ngx_conf_t is plain data that nginx itself copies so.
    let saved = unsafe { ptr::read(conf.as_ptr()) };
    let fields = conf.fields_mut();
    fields.cmd_type = NGX_MAIN_CONF as usize;
    fields.handler_conf = ptr::from_mut(block).cast();
    // SAFETY: nginx reads the block from the file at hand; `block` outlives the call.
    let result = unsafe { ngx_conf_parse(conf.as_ptr(), ptr::null_mut()) };
    // SAFETY: as above.
    unsafe { ptr::write(conf.as_ptr(), saved) };
    if result == CONF_OK {
        Ok(())
    } else {
        Err(Refused::Logged)
    }
}

fn finish(conf: Conf, block: Block) -> ConfResult<Upstrand> {
    let name = block.name;
    if block.members.is_empty() {
        return match block.unmatched.first() {
            Some(unmatched) => conf.refuse_at(
                unmatched.place,
                format_args!(
                    "no upstream matches \"~{}\", and none else is registered in upstrand \"{}\"",
                    Text(bytes(&unmatched.regex.pattern)),
                    Text(bytes(&name))
                ),
            ),
            None => conf.refuse(format_args!(
                "no upstream registered in upstrand \"{}\"",
                Text(bytes(&name))
            )),
        };
    }
    let main: &mut MainConf = conf.main_conf(crate::module())?;
    for unmatched in block.unmatched {
        push(&mut main.unmatched, unmatched)?;
    }

    let mut members = block.members;
    // Of one tier in the order of the lines: a stable sort would need memory.
    members.sort_unstable_by_key(|member| (member.tier, member.line));
    let tiers = collect(members.iter().map(|member| member.tier))?;
    let intervals = collect(members.iter().map(|member| member.interval))?;
    let plan = Plan::new(
        &tiers,
        intervals,
        block.order.unwrap_or_default(),
        block.tries.unwrap_or(0),
    )?;
    let memory = Memory::private(conf.pool()?, &plan).ok_or(Refused::Logged)?;

    let failures = if block.failure_words.is_empty() {
        Statuses::next_upstream_default()
    } else {
        block.failures
    };
    let tells_invalid_header = block
        .intercepts
        .iter()
        .map(|intercept| &intercept.statuses)
        .chain([&failures])
        .any(|list| list.covers(Word::InvalidHeader) && !list.covers(Word::Error));
    Ok(Upstrand {
        tells_invalid_header,
        name,
        members: collect(members.iter().map(|member| Member {
            name: member.uscf.fields().host,
            uscf: member.uscf,
            tier: member.tier,
        }))?,
        plan,
        failures,
        intercepts: block.intercepts,
        timeout: block.timeout.unwrap_or(0),
        memory,
        zone: block.zone,
    })
}

fn in_block(cf: *mut ngx_conf_t, body: impl FnOnce(Conf, &mut Block) -> ConfResult) -> *mut c_char {
    // SAFETY: as nginx calls it; parse() set handler_conf to the block that these directives stand
    // in.
    unsafe {
        callback::directive(cf, |conf| {
            let block = conf.fields().handler_conf.cast::<Block>().as_mut();
            body(conf, block.ok_or(Refused::Logged)?)
        })
    }
}

/// `upstream NAME|~REGEX [backup | tier=N] [blacklist_interval=TIME];`
///
/// # Safety
///
/// Called by nginx while it reads a configuration.
pub unsafe extern "C" fn cmd_upstream(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    in_block(cf, |conf, block| {
        let mut tier = None;
        let mut interval = None;
        for word in conf.args().iter().skip(2).map(bytes) {
            if word == b"backup" && tier.is_none() {
                tier = Some(1);
            } else if let (Some(number), None) = (word.strip_prefix(b"tier="), tier) {
                let Some(number) = parse_number(number) else {
                    return conf.refuse(format_args!("invalid parameter \"{}\"", Text(word)));
                };
                tier = Some(number);
            } else if let (Some(time), None) = (word.strip_prefix(b"blacklist_interval="), interval)
            {
                let Some(time) = parse_msec(time) else {
                    return conf.refuse(format_args!("invalid parameter \"{}\"", Text(word)));
                };
                interval = Some(time);
            } else {
                return conf.refuse(format_args!("invalid parameter \"{}\"", Text(word)));
            }
        }
        let (tier, interval) = (tier.unwrap_or(0), interval.unwrap_or(0));

        let name = conf.arg(1);
        match name.strip_prefix(b"~") {
            Some(regex) if !regex.is_empty() => {
                let regex = Regex::compile(conf, regex)?;
                let matching = regex.matching(conf)?;
                if matching.is_empty() {
                    let unmatched = Unmatched {
                        regex,
                        upstrand: block.name,
                        place: conf.place(),
                    };
                    push(&mut block.unmatched, unmatched)?;
                }
                for uscf in matching {
                    block.add(uscf, tier, interval)?;
                }
            }
            _ => {
                let main: &mut MainConf = conf.main_conf(crate::module())?;
                let Some(uscf) = main.names.declared(conf, name)? else {
                    return conf.refuse(format_args!("upstream \"{}\" is not found", Text(name)));
                };
                block.add(uscf, tier, interval)?;
            }
        }
        Ok(())
    })
}

impl Block {
    /// An upstream that stands in the upstrand already keeps its place and parameters.
    fn add(&mut self, uscf: SrvConf, tier: u32, interval: u64) -> ConfResult {
        self.known.try_reserve(1)?;
        if self.known.insert(uscf.as_ptr().cast()) {
            let listed = Listed {
                uscf,
                tier,
                interval,
                line: self.members.len(),
            };
            push(&mut self.members, listed)?;
        }
        Ok(())
    }
}

fn parse_number(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// Once all is read: a regex that matches nothing above it is warned of, as generated
/// configurations have such; one that matches what stands below it is a mistake.
pub fn check_unmatched(conf: Conf, main: &MainConf) -> ConfResult {
    for unmatched in &main.unmatched {
        let pattern = Text(bytes(&unmatched.regex.pattern));
        let upstrand = Text(bytes(&unmatched.upstrand));
        if let Some(below) = unmatched.regex.matching(conf)?.first() {
            return conf.refuse_at(
                unmatched.place,
                format_args!(
                    "upstream \"{}\" matches \"~{pattern}\" in upstrand \"{upstrand}\", \
                     but is declared below it",
                    Text(below.name())
                ),
            );
        }
        conf.warn_at(
            unmatched.place,
            format_args!("no upstream matches \"~{pattern}\" in upstrand \"{upstrand}\""),
        );
    }
    Ok(())
}

/// `order start_random | per_request | both;`
///
/// # Safety
///
/// Called by nginx while it reads a configuration.
pub unsafe extern "C" fn cmd_order(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    in_block(cf, |conf, block| {
        if block.order.is_some() {
            return Err(Refused::Directive(c"is duplicate"));
        }
        let mut order = Order::default();
        for word in conf.args().iter().skip(1).map(bytes) {
            let flag = match word {
                b"start_random" => &mut order.start_random,
                b"per_request" => &mut order.per_request,
                _ => return conf.refuse(format_args!("invalid value \"{}\"", Text(word))),
            };
            if *flag {
                return conf.refuse(format_args!("duplicate value \"{}\"", Text(word)));
            }
            *flag = true;
        }
        block.order = Some(order);
        Ok(())
    })
}

/// `next_upstream_statuses WORD ...;`
///
/// # Safety
///
/// Called by nginx while it reads a configuration.
pub unsafe extern "C" fn cmd_next_upstream_statuses(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    in_block(cf, |conf, block| {
        for n in 1..conf.args().len() {
            let word = statuses::word(conf, n)?;
            statuses::add(conf, &mut block.failures, &mut block.failure_words, word, n)?;
        }
        Ok(())
    })
}

/// `next_upstream_timeout TIME;`
///
/// # Safety
///
/// Called by nginx while it reads a configuration.
pub unsafe extern "C" fn cmd_next_upstream_timeout(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    in_block(cf, |conf, block| {
        if block.timeout.is_some() {
            return Err(Refused::Directive(c"is duplicate"));
        }
        block.timeout = parse_msec(conf.arg(1));
        if block.timeout.is_none() {
            return conf.refuse(format_args!("invalid value \"{}\"", Text(conf.arg(1))));
        }
        Ok(())
    })
}

/// `next_upstream_tries NUMBER;`
///
/// # Safety
///
/// Called by nginx while it reads a configuration.
pub unsafe extern "C" fn cmd_next_upstream_tries(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    in_block(cf, |conf, block| {
        if block.tries.is_some() {
            return Err(Refused::Directive(c"is duplicate"));
        }
        block.tries = parse_number(conf.arg(1));
        if block.tries.is_none() {
            return conf.refuse(format_args!("invalid value \"{}\"", Text(conf.arg(1))));
        }
        Ok(())
    })
}

/// `intercept_statuses WORD ... URI;`
///
/// # Safety
///
/// Called by nginx while it reads a configuration.
pub unsafe extern "C" fn cmd_intercept_statuses(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    in_block(cf, |conf, block| {
        let last = conf.args().len().saturating_sub(1);
        let uri = conf.arg(last);
        let mut line = Statuses::default();
        let mut words = Vec::new();
        for n in 1..last {
            let word = statuses::word(conf, n)?;
            if word == Word::NonIdempotent {
                return conf.refuse(format_args!("invalid value \"{}\"", Text(conf.arg(n))));
            }
            if block.intercepted.covers(word) {
                conf.warn(format_args!(
                    "\"{}\" is intercepted by an earlier \"intercept_statuses\"",
                    Text(conf.arg(n))
                ));
            }
            statuses::add(conf, &mut line, &mut words, word, n)?;
        }
        if !matches!(uri, [b'/' | b'$', ..] | [b'@', _, ..]) {
            return conf.refuse(format_args!("invalid URI \"{}\"", Text(uri)));
        }

        let pool = conf.pool()?;
        let uri = pool
            .zeroed::<ngx_http_complex_value_t>(1)
            .ok_or(Refused::Logged)?
            .as_ptr();
        let mut value = pool.copy(conf.arg(last)).ok_or(Refused::Logged)?;
        // SAFETY: zeros are an empty ngx_http_compile_complex_value_t.
        let mut ccv: ngx_http_compile_complex_value_t = unsafe { core::mem::zeroed() };
        ccv.cf = conf.as_ptr();
        ccv.value = &mut value;
        ccv.complex_value = uri;
        // SAFETY: all that it reads is set.
        if unsafe { ngx_http_compile_complex_value(&mut ccv) } != crate::nginx::OK {
            return Err(Refused::Logged);
        }

        words
            .into_iter()
            .for_each(|word| block.intercepted.add(word));
        let statuses = line;
        push(&mut block.intercepts, Intercept { statuses, uri })
    })
}

/// `zone NAME [SIZE];`
///
/// # Safety
///
/// Called by nginx while it reads a configuration.
pub unsafe extern "C" fn cmd_zone(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    in_block(cf, |conf, block| {
        if !block.zone.is_null() {
            return Err(Refused::Directive(c"is duplicate"));
        }
        block.zone = zone::add(conf)?;
        Ok(())
    })
}
