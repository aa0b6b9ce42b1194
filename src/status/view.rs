//! What is shown as JSON; contrib/schema/status.schema.json describes it.

use core::cell::RefCell;

use nginx_sys::NGINX_VERSION;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use walk::{explain, Reason, Step};

use super::clock::{Clock, Time};
use super::peers::{self, Peer, Shown};
use super::state::{self, State, Why};
use crate::conf::{MainConf, Member, Upstrand};
use crate::nginx::{bytes, Pool};

/// Servers that one answer shows, about; each upstream shows some.
const MOST_PEERS: usize = 5000;
const LEAST_PEERS: usize = 4;

/// What a view is made from: all of it at one time.
pub struct Source<'a> {
    /// The configuration that serves the request.
    pub main: &'a MainConf,
    /// When it is looked at.
    pub clock: Clock,
    pool: Pool,
    room: RefCell<&'a mut [Peer]>,
}

impl<'a> Source<'a> {
    /// For a view of `upstrands`. None: memory is short.
    pub fn new(
        main: &'a MainConf,
        pool: Pool,
        upstrands: impl Iterator<Item = &'a Upstrand>,
    ) -> Option<Source<'a>> {
        let members: usize = upstrands.map(|upstrand| upstrand.members.len()).sum();
        let room = MOST_PEERS.checked_div(members).unwrap_or(MOST_PEERS);
        Some(Source {
            main,
            clock: Clock::now(),
            pool,
            room: RefCell::new(pool.items(room.max(LEAST_PEERS))?),
        })
    }

    /// A member's state, and why.
    pub fn state(&self, upstrand: &Upstrand, number: usize) -> (State, Why) {
        let uscf = upstrand.members.get(number).map(|member| member.uscf);
        let tally = uscf.map(|uscf| peers::read(self.main, uscf, self.pool, &mut []).1);
        let memory = upstrand.memory.state();
        state::of(memory, number, self.clock.now, tally.unwrap_or_default())
    }

    /// A member, if there is one of this number.
    pub fn member(&'a self, upstrand: &'a Upstrand, number: usize) -> Option<MemberView<'a>> {
        upstrand.members.get(number).map(|member| MemberView {
            source: self,
            upstrand,
            member,
            number,
        })
    }
}

/// The whole document.
pub struct Document<'a>(pub &'a Source<'a>);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("version", &1)?;
        map.serialize_entry("nginx", nginx_version())?;
        map.serialize_entry("module", env!("CARGO_PKG_VERSION"))?;
        map.serialize_entry("worker", &std::process::id())?;
        map.serialize_entry("time", &self.0.clock.time())?;
        map.serialize_entry("upstrands", &Upstrands(self.0))?;
        map.end()
    }
}

/// nginx's version, as the module was built for it.
pub fn nginx_version() -> &'static str {
    NGINX_VERSION.to_str().unwrap_or_default()
}

/// All upstrands by name.
pub struct Upstrands<'a>(pub &'a Source<'a>);

impl Serialize for Upstrands<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let upstrands = &self.0.main.upstrands;
        let mut map = serializer.serialize_map(Some(upstrands.len()))?;
        for upstrand in upstrands {
            let view = UpstrandView(self.0, upstrand);
            map.serialize_entry(&Shown(upstrand.name_bytes()), &view)?;
        }
        map.end()
    }
}

/// An upstrand.
pub struct UpstrandView<'a>(pub &'a Source<'a>, pub &'a Upstrand);

impl Serialize for UpstrandView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let UpstrandView(source, upstrand) = *self;
        let counts = upstrand.memory.state().totals;
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("zone", &upstrand.zone_name().map(Shown))?;
        map.serialize_entry("walks", &counts.walks())?;
        map.serialize_entry("failovers", &counts.failovers())?;
        map.serialize_entry("exhausted", &counts.exhausted())?;
        map.serialize_entry("intercepted", &counts.intercepted())?;
        map.serialize_entry("deadline_exceeded", &counts.deadline_exceeded())?;
        map.serialize_entry("upstreams", &Members(source, upstrand))?;
        map.end()
    }
}

struct Members<'a>(&'a Source<'a>, &'a Upstrand);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Members(source, upstrand) = *self;
        let numbers = 0..upstrand.members.len();
        serializer.collect_seq(numbers.filter_map(|number| source.member(upstrand, number)))
    }
}

/// An upstream of an upstrand.
pub struct MemberView<'a> {
    source: &'a Source<'a>,
    upstrand: &'a Upstrand,
    member: &'a Member,
    number: usize,
}

impl Serialize for MemberView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (number, member) = (self.number, self.member);
        let (source, clock) = (self.source, self.source.clock);
        let memory = self.upstrand.memory.state();
        let mut room = source.room.borrow_mut();
        let (peers, tally) = peers::read(source.main, member.uscf, source.pool, &mut room);
        let (state, why) = state::of(memory, number, clock.now, tally);
        let until = memory.until(number);
        let is_listed = memory.is_marked(number) && until > clock.now;
        let failed = memory.members.get(number).and_then(|m| m.failed());
        let since = memory.members.get(number).and_then(|m| m.since());
        let counts = memory.counts.get(number);

        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &Shown(bytes(&member.name)))?;
        map.serialize_entry("tier", &member.tier)?;
        map.serialize_entry("state", &state)?;
        map.serialize_entry("reason", &why)?;
        map.serialize_entry("since", &since.map(|since| clock.at(since)))?;
        map.serialize_entry("draining", &memory.is_draining(number))?;
        map.serialize_entry("blacklisted_until", &is_listed.then(|| clock.at(until)))?;
        map.serialize_entry("blacklist_interval", &self.upstrand.plan.interval(number))?;
        map.serialize_entry("tries", &counts.map_or(0, |counts| counts.tries()))?;
        map.serialize_entry("failures", &Counts(|| counts.map(|c| c.failures())))?;
        map.serialize_entry("responses", &Counts(|| counts.map(|c| c.classes())))?;
        map.serialize_entry(
            "last_failure",
            &failed.map(|(at, reason)| Failure {
                time: clock.at(at),
                reason: Said(reason),
            }),
        )?;
        map.serialize_entry("peers_total", &tally.total)?;
        map.serialize_entry("peers", peers)?;
        map.end()
    }
}

#[derive(Serialize)]
struct Failure {
    time: Time,
    reason: Said<Reason>,
}

/// Something in its words.
struct Said<T>(T);

impl<T: core::fmt::Display> Serialize for Said<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Numbers by word.
struct Counts<F>(F);

impl<I: Iterator<Item = (&'static str, u64)>, F: Fn() -> Option<I>> Serialize for Counts<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map((self.0)().into_iter().flatten())
    }
}

/// Where a walk that began now would go.
pub struct Explanation<'a>(pub &'a Source<'a>, pub &'a Upstrand);

impl Serialize for Explanation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Explanation(source, upstrand) = *self;
        let memory = upstrand.memory.state();
        let last_resort = explain(&upstrand.plan, memory, source.clock.now, |_| ());
        let order = upstrand.plan.order;
        let order = match (order.per_request, order.start_random) {
            (false, _) => "by turns",
            (true, true) => "by lot",
            (true, false) => "as configured",
        };
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("upstrand", &Shown(upstrand.name_bytes()))?;
        map.serialize_entry("zone", &upstrand.zone_name().map(Shown))?;
        map.serialize_entry("time", &source.clock.time())?;
        map.serialize_entry("order", order)?;
        map.serialize_entry("last_resort", &last_resort)?;
        map.serialize_entry("upstreams", &Steps(source, upstrand))?;
        map.end()
    }
}

struct Steps<'a>(&'a Source<'a>, &'a Upstrand);

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;

        let Steps(source, upstrand) = *self;
        let memory = upstrand.memory.state();
        let mut seq = serializer.serialize_seq(Some(upstrand.members.len()))?;
        let mut result = Ok(());
        for visited in [true, false] {
            explain(&upstrand.plan, memory, source.clock.now, |step| {
                if step.position.is_some() == visited && result.is_ok() {
                    result = seq.serialize_element(&StepView(source, upstrand, step));
                }
            });
        }
        result?;
        seq.end()
    }
}

struct StepView<'a>(&'a Source<'a>, &'a Upstrand, Step);

impl Serialize for StepView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let StepView(source, upstrand, step) = *self;
        let member = upstrand.members.get(step.member);
        let name = member.map_or(&[][..], |member| bytes(&member.name));
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", &Shown(name))?;
        map.serialize_entry("tier", &member.map_or(0, |member| member.tier))?;
        map.serialize_entry("position", &step.position)?;
        map.serialize_entry("reason", &Said(Because(source, upstrand, step)))?;
        map.end()
    }
}

/// Why a walk would visit a member, or pass it by.
struct Because<'a>(&'a Source<'a>, &'a Upstrand, Step);

impl core::fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        use walk::Why as Visit;

        let Because(source, upstrand, step) = *self;
        let (_, why) = source.state(upstrand, step.member);
        match step.why {
            Visit::Usable => match why {
                Why::AllDown | Why::NoneLive => write!(f, "{why}: it would fail at once"),
                _ if upstrand.plan.order.per_request && upstrand.plan.order.start_random => {
                    f.write_str("usable; the first of its tier is drawn by lot")
                }
                _ => f.write_str("usable"),
            },
            Visit::Probe => f.write_str("its blacklisting is over: the request probes it"),
            Visit::LastResort => write!(f, "{why}, but so are all others: last resort"),
            Visit::Blacklisted => {
                let until = upstrand.memory.state().until(step.member);
                write!(f, "{why} until {}", source.clock.at(until))
            }
            Visit::Draining => write!(f, "{why}"),
            Visit::TooManyTries => write!(
                f,
                "usable, but next_upstream_tries ends the walk after {}",
                upstrand.plan.tries
            ),
        }
    }
}

/// A refusal.
#[derive(Serialize)]
pub struct Refusal<'a> {
    /// What is wrong.
    pub error: RefusalText<'a>,
}

/// See `Refusal`.
#[derive(Serialize)]
pub struct RefusalText<'a> {
    /// The status of the answer.
    pub status: u16,
    /// Why, in words.
    pub text: Shown<'a>,
}
