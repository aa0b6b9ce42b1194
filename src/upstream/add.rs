//! `add_upstream NAME [backup] [weight=N];`

use core::ffi::{c_char, c_void};

use nginx_sys::{
    ngx_array_push, ngx_command_t, ngx_conf_t, ngx_http_upstream_server_t, NGX_HTTP_UPSTREAM_BACKUP,
};

use super::servers_of;
use crate::conf::MainConf;
use crate::nginx::{bytes, callback, memory, Conf, ConfResult, Place, Refused, SrvConf, Text};

/// `add_upstream NAME [backup] [weight=N];`
///
/// # Safety
///
/// Called by nginx while it reads an `upstream{}` block.
pub unsafe extern "C" fn cmd_add_upstream(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: as nginx calls it.
    unsafe { callback::directive(cf, add) }
}

fn add(conf: Conf) -> ConfResult {
    let host = conf.upstream()?;
    let name = conf.arg(1);
    if name.eq_ignore_ascii_case(host.name()) {
        return conf.refuse(format_args!("upstream \"{}\" makes recursion", Text(name)));
    }

    let mut backup = false;
    let mut factor = None;
    for word in conf.args().iter().skip(2).map(bytes) {
        if word == b"backup" {
            if backup {
                return conf.refuse(format_args!(
                    "parameter \"backup\" has been already declared"
                ));
            }
            backup = true;
        } else if let Some(number) = word.strip_prefix(b"weight=") {
            if factor.is_some() {
                return conf.refuse(format_args!(
                    "parameter \"weight\" has been already declared"
                ));
            }
            factor = parse_weight(number);
            if factor.is_none() {
                return conf.refuse(format_args!(
                    "parameter \"weight\" must be a positive integer value in \"{}\"",
                    Text(word)
                ));
            }
        } else {
            return conf.refuse(format_args!("invalid parameter \"{}\"", Text(word)));
        }
    }

    let main: &mut MainConf = conf.main_conf(crate::module())?;
    let Some(source) = main.names.declared(conf, name)? else {
        return conf.refuse(format_args!("upstream \"{}\" not found", Text(name)));
    };

    if backup && !knows_backup(host) {
        return conf.refuse(format_args!(
            "balancing method does not support parameter \"backup\""
        ));
    }
    let mut backups = false;
    for mut server in servers_of(source)? {
        if let Some(factor) = factor {
            server.weight = match server.weight.checked_mul(factor) {
                Some(weight) if isize::try_from(weight).is_ok() => weight,
                _ => {
                    return conf.refuse(format_args!(
                        "weight {} of server \"{}\" times \"{}\" is too large",
                        server.weight,
                        Text(bytes(&server.name)),
                        Text(
                            conf.args()
                                .iter()
                                .skip(2)
                                .map(bytes)
                                .find(|w| w.starts_with(b"weight="))
                                .unwrap_or_default()
                        )
                    ))
                }
            };
        }
        if backup {
            server.set_backup(1);
        }
        backups |= server.backup() != 0;
        push(host, server)?;
    }
    if backups {
        let added = AddedBackups {
            host,
            source,
            asked: backup,
            place: conf.place(),
        };
        memory::push(&mut main.added_backups, added)?;
    }
    Ok(())
}

/// Whether the balancing method, as far as it is read, knows backup servers.
fn knows_backup(host: SrvConf) -> bool {
    host.fields().flags & NGX_HTTP_UPSTREAM_BACKUP as usize != 0
}

/// An `add_upstream` that gave its host backup servers.
pub struct AddedBackups {
    host: SrvConf,
    source: SrvConf,
    /// By the word `backup`; else they are such in the source.
    asked: bool,
    place: Place,
}

/// Once all is read: a balancing method may stand below `add_upstream`, and not every one knows
/// backup servers.
pub fn check_backups(conf: Conf, main: &MainConf) -> ConfResult {
    for added in &main.added_backups {
        if knows_backup(added.host) {
            continue;
        }
        if added.asked {
            return conf.refuse_at(
                added.place,
                format_args!("balancing method does not support parameter \"backup\""),
            );
        }
        conf.warn_at(
            added.place,
            format_args!(
                "backup servers of upstream \"{}\" are not used \
                 by the balancing method of upstream \"{}\"",
                Text(added.source.name()),
                Text(added.host.name())
            ),
        );
    }
    Ok(())
}

fn parse_weight(text: &[u8]) -> Option<usize> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: isize = core::str::from_utf8(text).ok()?.parse().ok()?;
    usize::try_from(number).ok().filter(|number| *number > 0)
}

fn push(host: SrvConf, server: ngx_http_upstream_server_t) -> ConfResult {
    // SAFETY: inside upstream{} `servers` is an array of servers.
    let place = unsafe { ngx_array_push(host.fields().servers) };
    if place.is_null() {
        return Err(Refused::Logged);
    }
    // SAFETY: a new element of the array.
    unsafe { place.cast::<ngx_http_upstream_server_t>().write(server) };
    Ok(())
}
