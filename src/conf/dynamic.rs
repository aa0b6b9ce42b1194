//! `dynamic_upstrand $VARIABLE SOURCE ...;`

use core::ffi::{c_char, c_void};
use std::collections::HashMap;

use nginx_sys::{ngx_command_t, ngx_conf_t, ngx_str_t, ngx_uint_t, NGX_HTTP_VAR_NOCACHEABLE};

use super::{LocConf, MainConf, Upstrand};
use crate::engine;
use crate::nginx::memory::{lowercase, push};
use crate::nginx::{bytes, callback, Conf, ConfResult, Place, Refused, Text};

/// Where an upstrand's name comes from.
pub enum Source {
    /// A variable, by its index.
    Variable(ngx_uint_t),
    /// An upstrand's name. Upstrands may be declared below the line, so the name is looked up when
    /// all is read.
    Literal(ngx_str_t),
    /// An upstrand; boxed in the main configuration.
    Upstrand(*const Upstrand),
}

/// A line of `dynamic_upstrand`.
pub struct Line {
    /// Sources in the order of the line.
    pub sources: Vec<Source>,
    place: Place,
}

/// All lines, and the variables that they are for.
#[derive(Default)]
pub struct Dynamic {
    variables: HashMap<Vec<u8>, usize>,
    lines: Vec<Line>,
}

impl Dynamic {
    /// The sources that a line names.
    pub fn sources(&self, line: usize) -> &[Source] {
        self.lines.get(line).map_or(&[], |line| &line.sources)
    }
}

/// `dynamic_upstrand $VARIABLE SOURCE ...;`
///
/// # Safety
///
/// Called by nginx while it reads a configuration; `conf` is the location's LocConf.
pub unsafe extern "C" fn cmd_dynamic_upstrand(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: as nginx calls it.
    unsafe {
        callback::directive(cf, |cf| {
            let loc = conf.cast::<LocConf>().as_mut().ok_or(Refused::Logged)?;
            read_line(cf, loc)
        })
    }
}

fn read_line(conf: Conf, loc: &mut LocConf) -> ConfResult {
    let variable = variable(conf, conf.arg(1))?;
    if loc.dynamic.iter().any(|(known, _)| *known == variable) {
        return conf.refuse(format_args!(
            "duplicate \"dynamic_upstrand\" for variable \"{}\"",
            Text(conf.arg(1))
        ));
    }

    let last = conf.args().len().saturating_sub(1);
    let mut sources = Vec::new();
    for (n, word) in conf.args().iter().enumerate().skip(2) {
        let word = bytes(word);
        let before = conf.args().iter().take(n).skip(1).map(bytes);
        if before
            .into_iter()
            .any(|other| other.eq_ignore_ascii_case(word))
        {
            return conf.refuse(format_args!("duplicate parameter \"{}\"", Text(word)));
        }
        let source = match word.strip_prefix(b"$") {
            Some(name) => Source::Variable(conf.variable_index(variable_name(conf, word, name)?)?),
            None if n == last => Source::Literal(conf.pool()?.copy(word).ok_or(Refused::Logged)?),
            None => {
                return conf.refuse(format_args!(
                    "invalid parameter \"{}\" after upstrand \"{}\"",
                    Text(conf.arg(n.saturating_add(1))),
                    Text(word)
                ))
            }
        };
        push(&mut sources, source)?;
    }

    let main: &mut MainConf = conf.main_conf(crate::module())?;
    let line = main.dynamic.lines.len();
    let place = conf.place();
    push(&mut main.dynamic.lines, Line { sources, place })?;
    push(&mut loc.dynamic, (variable, line))
}

fn variable_name<'a>(conf: Conf, word: &[u8], name: &'a [u8]) -> ConfResult<&'a [u8]> {
    if name.is_empty() {
        return conf.refuse(format_args!("invalid variable name \"{}\"", Text(word)));
    }
    Ok(name)
}

/// The number of the variable that a line is for; added to nginx's on first sight.
fn variable(conf: Conf, word: &[u8]) -> ConfResult<usize> {
    let name = match word.strip_prefix(b"$") {
        Some(name) => variable_name(conf, word, name)?,
        None => return conf.refuse(format_args!("invalid variable name \"{}\"", Text(word))),
    };
    let main: &mut MainConf = conf.main_conf(crate::module())?;
    let key = lowercase(name)?;
    if let Some(number) = main.dynamic.variables.get(&key) {
        return Ok(*number);
    }
    let added = conf.add_variable(name, NGX_HTTP_VAR_NOCACHEABLE)?;
    if added.get_handler.is_some() {
        return conf.refuse(format_args!("the duplicate \"{}\" variable", Text(name)));
    }
    let number = main.dynamic.variables.len();
    main.dynamic.variables.try_reserve(1)?;
    main.dynamic.variables.insert(key, number);
    added.get_handler = Some(engine::dynamic_variable);
    added.data = number;
    Ok(number)
}

/// Finds the upstrands that lines name, once all are declared.
pub fn resolve_literals(conf: Conf, main: &mut MainConf) -> ConfResult {
    let mut lines = core::mem::take(&mut main.dynamic.lines);
    for line in &mut lines {
        for source in &mut line.sources {
            if let Source::Literal(name) = source {
                let name = bytes(name);
                let Some(upstrand) = main.upstrand(name) else {
                    return conf.refuse_at(
                        line.place,
                        format_args!("upstrand \"{}\" is not found", Text(name)),
                    );
                };
                *source = Source::Upstrand(upstrand);
            }
        }
    }
    main.dynamic.lines = lines;
    Ok(())
}
