//! Upstreams whose names can't stand in a URL.

use std::collections::HashSet;

use crate::nginx::memory::{collect, lowercase, push};
use crate::nginx::{Conf, ConfResult, Refused, SrvConf};

/// Gives such upstreams (`hostunix_/a`) another name for nginx's own
/// look-up, so that an upstrand can reach them. Nothing else could: a URL ends their name early.
pub fn make_reachable(conf: Conf) -> ConfResult {
    // A bracket in front begins an IPv6 address.
    let fits = |name: &[u8]| {
        !name.is_empty()
            && name.first() != Some(&b'[')
            && !name.iter().any(|byte| b"/:?#".contains(byte))
    };
    let is_misfit = |uscf: &SrvConf| uscf.is_declared() && !fits(uscf.name());
    let misfits = collect(conf.upstreams().filter(is_misfit))?;
    if misfits.is_empty() {
        return Ok(());
    }
    let mut taken = HashSet::new();
    for uscf in conf.upstreams() {
        taken.try_reserve(1)?;
        taken.insert(lowercase(uscf.name())?);
    }
    for uscf in misfits {
        let to_line = |byte: &u8| if fits(&[*byte]) { *byte } else { b'_' };
        let mut name = collect(uscf.name().iter().map(to_line))?;
        taken.try_reserve(1)?;
        while !taken.insert(lowercase(&name)?) {
            push(&mut name, b'_')?;
        }
        uscf.fields_mut().host = conf.pool()?.copy(&name).ok_or(Refused::Logged)?;
    }
    Ok(())
}
