//! Upstreams whose names can't stand in a URL.

use std::collections::HashSet;

use crate::nginx::{lowercase, Conf, ConfResult, Refused, SrvConf};

/// Gives such upstreams (`hostunix_/a`) another name for nginx's own
/// look-up, so that an upstrand can reach them. Nothing else could: a URL ends their name early.
pub fn make_reachable(conf: Conf) -> ConfResult {
    // A bracket in front begins an IPv6 address.
    let fits = |name: &[u8]| {
        !name.is_empty()
            && name.first() != Some(&b'[')
            && !name.iter().any(|byte| b"/:?#".contains(byte))
    };
    let all: Vec<SrvConf> = conf
        .upstreams()
        .iter()
        // SAFETY: upstreams of the configuration at hand.
        .filter_map(|uscf| unsafe { SrvConf::from_ptr(*uscf) })
        .collect();
    let misfits: Vec<SrvConf> = all
        .iter()
        .copied()
        .filter(|uscf| uscf.is_declared() && !fits(uscf.name()))
        .collect();
    if misfits.is_empty() {
        return Ok(());
    }
    let mut taken: HashSet<Box<[u8]>> = all.iter().map(|uscf| lowercase(uscf.name())).collect();
    for uscf in misfits {
        let to_line = |byte: &u8| if fits(&[*byte]) { *byte } else { b'_' };
        let mut name: Vec<u8> = uscf.name().iter().map(to_line).collect();
        while !taken.insert(lowercase(&name)) {
            name.push(b'_');
        }
        uscf.fields_mut().host = conf.pool()?.copy(&name).ok_or(Refused::Logged)?;
    }
    Ok(())
}
