//! Times for people and machines.

use core::fmt;

use nginx_sys::{ngx_cached_time, ngx_gmtime, ngx_tm_t};
use serde::{Serialize, Serializer};

use crate::nginx;

/// nginx's two clocks at one moment.
#[derive(Clone, Copy)]
pub struct Clock {
    /// ms of the monotonic clock, by which the module reckons.
    pub now: u64,
    wall: u64,
}

impl Clock {
    /// Both clocks now.
    pub fn now() -> Clock {
        // SAFETY: nginx sets the pointer before it runs any module; the event loop of this
        // process moves it.
        let (sec, msec) = unsafe {
            let time = *ngx_cached_time.cast_const();
            (time.sec, time.msec)
        };
        let seconds = u64::try_from(sec).unwrap_or(0);
        Clock {
            now: nginx::now(),
            wall: seconds.saturating_mul(1000).saturating_add(msec as u64),
        }
    }

    /// The time of day now.
    pub fn time(self) -> Time {
        Time(self.wall)
    }

    /// The time of day of a moment of the monotonic clock, in ms, be it past or to come.
    pub fn at(self, moment: u64) -> Time {
        Time(if moment > self.now {
            self.wall.saturating_add(moment.saturating_sub(self.now))
        } else {
            self.wall.saturating_sub(self.now.saturating_sub(moment))
        })
    }
}

/// A time of day: ms since 1970.
#[derive(Clone, Copy)]
pub struct Time(u64);

/// The last one that four digits of a year can say.
const LAST: u64 = 253_402_300_799_999;

impl fmt::Display for Time {
    /// ISO 8601 in UTC.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.min(LAST);
        // SAFETY: zeros are a time; ngx_gmtime() sets it.
        let tm = unsafe {
            let mut tm: ngx_tm_t = core::mem::zeroed();
            ngx_gmtime(i64::try_from(ms / 1000).unwrap_or(0), &mut tm);
            tm
        };
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            tm.tm_year,
            tm.tm_mon,
            tm.tm_mday,
            tm.tm_hour,
            tm.tm_min,
            tm.tm_sec,
            ms % 1000
        )
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
