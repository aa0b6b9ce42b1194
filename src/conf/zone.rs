//! `zone NAME [SIZE];` inside `upstrand{}`.

use core::ptr;

use nginx_sys::{ngx_parse_size, ngx_shared_memory_add, ngx_shm_zone_t};

use super::MainConf;
use crate::nginx::memory::{boxed, push};
use crate::nginx::{Conf, ConfResult, Refused, Text};
use crate::zone::{self, Zone};

/// Adds a zone, or finds the one that another upstrand has added.
pub fn add(conf: Conf) -> ConfResult<*mut ngx_shm_zone_t> {
    let pool = conf.pool()?;
    let mut name = pool.copy(conf.arg(1)).ok_or(Refused::Logged)?;
    if name.len == 0 {
        return conf.refuse(format_args!("invalid zone name \"\""));
    }
    let mut size = 0;
    if conf.args().len() > 2 {
        let mut text = crate::nginx::string(conf.arg(2));
        // SAFETY: ngx_parse_size() reads the string only.
        let parsed = unsafe { ngx_parse_size(&mut text) };
        if parsed <= 0 {
            return conf.refuse(format_args!("invalid zone size \"{}\"", Text(conf.arg(2))));
        }
        size = usize::try_from(parsed).unwrap_or(0);
    }

    // SAFETY: the name lives in the configuration's pool, the tag is the module.
    let shm_zone = unsafe {
        ngx_shared_memory_add(conf.as_ptr(), &mut name, size, crate::module_ptr().cast())
    };
    // SAFETY: a zone of the configuration at hand, or NULL.
    let Some(fields) = (unsafe { shm_zone.as_mut() }) else {
        return Err(Refused::Logged);
    };
    if fields.data.is_null() {
        let main: &mut MainConf = conf.main_conf(crate::module())?;
        let mut zone = boxed(Zone::new(shm_zone, conf.place()))?;
        fields.data = ptr::from_mut(zone.as_mut()).cast();
        fields.init = Some(zone::init);
        // A reload makes a new zone and takes over what members still exist: workers of the old
        // configuration go on with the old one, and nothing of theirs is freed under them.
        fields.noreuse = 1;
        push(&mut main.zones, zone)?;
    } else if size > 0 {
        // SAFETY: set above, for the first upstrand in the zone.
        if let Some(zone) = unsafe { fields.data.cast::<Zone>().as_mut() } {
            zone.set_place(conf.place());
        }
    }
    Ok(shm_zone)
}

/// Refuses zones that can't hold their upstrands, and says how much they need.
pub fn check_sizes(conf: Conf, main: &mut MainConf) -> ConfResult {
    for upstrand in &main.upstrands {
        if let Some(zone) = main
            .zones
            .iter_mut()
            .find(|zone| zone.shm_zone() == upstrand.zone)
        {
            zone.add(ptr::from_ref(upstrand.as_ref()))?;
        }
    }
    for zone in &main.zones {
        let needed = zone.needed();
        if zone.size() == 0 {
            return conf.refuse_at(
                zone.place(),
                format_args!(
                    "zone \"{}\" has no size: its upstrands need {}k",
                    Text(zone.name()),
                    needed.div_ceil(1024)
                ),
            );
        }
        if zone.size() < needed {
            return conf.refuse_at(
                zone.place(),
                format_args!(
                    "zone \"{}\" is too small: its upstrands need {}k",
                    Text(zone.name()),
                    needed.div_ceil(1024)
                ),
            );
        }
    }
    Ok(())
}
