//! Scripts of walks and lists of status words, recorded ones and random ones, against plain models
//! of the rules.
//!
//! The recorded ones are in `corpus/`. Random ones are made anew or by changes of recorded ones, each
//! from a seed of its own. What fails is cut down to the lines that it takes and written to `corpus/`,
//! where the next run finds it.
//!
//! - `FUZZ_ROUNDS`: how many random ones of each kind (default 400)
//! - `FUZZ_SECONDS`: so many seconds of each kind instead
//! - `FUZZ_SEED`: the seed of the first one, the others follow (default 0; with `FUZZ_SECONDS` the
//!   clock's). A failure prints its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, str, thread};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use walk::{
    explain, member_words, Answer, Cause, MemberCounts, MemberState, Order, Plan, Reason, State,
    Statuses, TierState, UpstrandCounts, Walk, Why, Word,
};

// The corpus, and the random runs.

/// What a kind of input has to be.
struct Kind {
    name: &'static str,
    /// Panics if the code does not do what the model does.
    check: fn(&[u8]),
    /// A new input.
    make: fn(&mut StdRng) -> Vec<u8>,
    /// A line that was not there.
    line: fn(&mut StdRng) -> Vec<u8>,
}

const WALKS: Kind = Kind {
    name: "walks",
    check: check_script,
    make: random_script,
    line: random_line,
};

const WORDS: Kind = Kind {
    name: "words",
    check: check_words,
    make: random_words,
    line: random_word,
};

impl Kind {
    fn dir(&self) -> PathBuf {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        top.join("corpus").join(self.name)
    }

    fn recorded(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.dir()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }

    fn passes(&self, input: &[u8]) -> bool {
        catch_unwind(|| (self.check)(input)).is_ok()
    }

    /// Runs what is recorded.
    fn replay(&self) {
        let recorded = self.recorded();
        assert!(recorded.len() >= 5, "no corpus in {:?}", self.dir());
        for (path, input) in recorded {
            assert!(self.passes(&input), "{}", path.display());
        }
    }

    /// Runs random inputs.
    fn run(&self) {
        let recorded: Vec<Vec<u8>> = self.recorded().into_values().collect();
        let end = number("FUZZ_SECONDS").map(|n| Instant::now() + Duration::from_secs(n));
        let rounds = number("FUZZ_ROUNDS").unwrap_or(400);
        let first = number("FUZZ_SEED").unwrap_or_else(|| match end {
            Some(_) => SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() << 20,
            None => 0,
        });
        let mut seed = first;
        while end.map_or(seed < first + rounds, |end| Instant::now() < end) {
            let input = self.input(seed, &recorded);
            if !self.passes(&input) {
                let input = self.cut_down(input);
                let path = self.dir().join(format!("found-{seed}"));
                let written = fs::write(&path, &input);
                panic!(
                    "FUZZ_SEED={seed} FUZZ_ROUNDS=1: {}: {written:?}\n{}",
                    path.display(),
                    String::from_utf8_lossy(&input)
                );
            }
            seed += 1;
        }
        println!("{} {} from FUZZ_SEED={first} on", seed - first, self.name);
    }

    /// The input of a seed: a new one, or a recorded one with some changes.
    fn input(&self, seed: u64, recorded: &[Vec<u8>]) -> Vec<u8> {
        let mut random = StdRng::seed_from_u64(seed);
        if random.random() {
            return (self.make)(&mut random);
        }
        let model = &recorded[random.random_range(0..recorded.len())];
        let mut lines: Vec<Vec<u8>> = split(model).map(<[u8]>::to_vec).collect();
        for _ in 0..random.random_range(1..8) {
            let (at, other) = (
                pick(&mut random, lines.len()),
                pick(&mut random, lines.len()),
            );
            match random.random_range(0..4) {
                0 if lines.len() > 1 => drop(lines.remove(at)),
                1 => lines.swap(at, other),
                2 => lines.insert(at, lines[other].clone()),
                _ => lines.insert(at, (self.line)(&mut random)),
            }
        }
        lines.join(&b'\n')
    }

    /// Leaves out what it does not take to fail.
    fn cut_down(&self, input: Vec<u8>) -> Vec<u8> {
        let mut lines: Vec<&[u8]> = split(&input).collect();
        let mut at = 0;
        while at < lines.len() {
            let mut fewer = lines.clone();
            fewer.remove(at);
            if self.passes(&fewer.join(&b'\n')) {
                at += 1;
            } else {
                lines = fewer;
            }
        }
        lines.join(&b'\n')
    }
}

fn split(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    input.split(|byte| *byte == b'\n')
}

fn pick(random: &mut StdRng, len: usize) -> usize {
    random.random_range(0..len.max(1))
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn recorded_walks_are_those_of_the_model() {
    WALKS.replay();
}

#[test]
fn recorded_words_are_taken_as_the_model_takes_them() {
    WORDS.replay();
}

#[test]
fn random_walks_are_those_of_the_model() {
    WALKS.run();
}

#[test]
fn random_words_are_taken_as_the_model_takes_them() {
    WORDS.run();
}

// Walks.

/// The rules, said plainly: what is known of each member, and a walk that looks at each in turn.
struct Model {
    plan: Plan,
    members: Vec<Member>,
    turns: Vec<u64>,
    now: u64,
    draw: u64,
}

#[derive(Clone, Default)]
struct Member {
    mark: Option<Mark>,
    draining: bool,
}

#[derive(Clone)]
struct Mark {
    by_hand: bool,
    made: u64,
    first_until: u64,
    until: u64,
}

impl Mark {
    /// It was over, and a walk has moved it on to probe the member.
    fn is_probed(&self) -> bool {
        self.until != self.first_until
    }
}

#[derive(Default)]
struct ModelWalk {
    tier: usize,
    /// Members of the tier in the order of visiting, once it is entered.
    order: Option<Vec<usize>>,
    pos: usize,
    last_resort: Option<bool>,
}

impl Model {
    fn start(&self, index: usize) -> usize {
        let tier = self.plan.tiers[index];
        let order = self.plan.order;
        match (order.per_request, order.start_random) {
            (false, _) => (self.turns[index] % tier.len as u64) as usize,
            (true, true) => (self.draw % tier.len as u64) as usize,
            (true, false) => 0,
        }
    }

    fn order(&self, index: usize, start: usize) -> Vec<usize> {
        let tier = self.plan.tiers[index];
        (0..tier.len)
            .map(|n| tier.first + (start + n) % tier.len)
            .collect()
    }

    fn is_usable(&self, member: usize) -> bool {
        let Member { mark, draining } = &self.members[member];
        !draining && mark.as_ref().is_none_or(|mark| mark.until <= self.now)
    }

    fn any_usable(&self) -> bool {
        (0..self.members.len()).any(|member| self.is_usable(member))
    }

    fn next(&mut self, walk: &mut ModelWalk) -> Option<(usize, bool, bool)> {
        let is_first = walk.last_resort.is_none();
        let last_resort = *walk.last_resort.get_or_insert(!self.any_usable());
        while walk.tier < self.plan.tiers.len() {
            let order = match walk.order.take() {
                Some(order) => order,
                None => {
                    let start = self.start(walk.tier);
                    self.turns[walk.tier] = self.turns[walk.tier].wrapping_add(1);
                    walk.pos = 0;
                    self.order(walk.tier, start)
                }
            };
            while let Some(member) = order.get(walk.pos).copied() {
                walk.pos += 1;
                if last_resort && !self.members[member].draining {
                    walk.order = Some(order);
                    return Some((member, false, is_first));
                }
                if !last_resort && self.is_usable(member) {
                    walk.order = Some(order);
                    return Some((member, self.claim(member), false));
                }
            }
            walk.tier += 1;
        }
        None
    }

    /// Whether the visit is a probe; no other walk makes one meanwhile.
    fn claim(&mut self, member: usize) -> bool {
        let interval = self.plan.interval(member);
        let now = self.now;
        let mark = &mut self.members[member].mark;
        let is_probe = mark.is_some();
        *mark = mark.take().filter(|_| interval > 0).map(|mark| Mark {
            until: now.saturating_add(interval),
            ..mark
        });
        is_probe
    }

    fn preview(&self) -> Option<usize> {
        let orders = (0..self.plan.tiers.len()).map(|index| self.order(index, self.start(index)));
        let mut all: Vec<usize> = orders.flatten().collect();
        all.retain(|member| !self.members[*member].draining);
        let usable = all.iter().find(|member| self.is_usable(**member));
        usable.or(all.first()).copied()
    }

    fn pinned(&self, member: usize) -> Option<ModelWalk> {
        let tiers = &self.plan.tiers;
        let tier = tiers
            .iter()
            .position(|tier| (tier.first..tier.first + tier.len).contains(&member))?;
        Some(ModelWalk {
            tier,
            order: Some(self.order(tier, member - tiers[tier].first)),
            pos: 1,
            last_resort: Some(false),
        })
    }
}

struct Memory {
    tiers: Vec<TierState>,
    members: Vec<MemberState>,
    counts: Vec<MemberCounts>,
    totals: UpstrandCounts,
    marked: Vec<AtomicU64>,
    draining: Vec<AtomicU64>,
}

impl Memory {
    fn of(plan: &Plan) -> Memory {
        let members = plan.intervals.len();
        let bits = || (0..member_words(members)).map(|_| AtomicU64::new(0));
        Memory {
            tiers: plan.tiers.iter().map(|_| TierState::default()).collect(),
            members: (0..members).map(|_| MemberState::default()).collect(),
            counts: (0..members).map(|_| MemberCounts::default()).collect(),
            totals: UpstrandCounts::default(),
            marked: bits().collect(),
            draining: bits().collect(),
        }
    }

    fn state(&self) -> State<'_> {
        State {
            tiers: &self.tiers,
            members: &self.members,
            counts: &self.counts,
            totals: &self.totals,
            marked: &self.marked,
            draining: &self.draining,
        }
    }
}

const FAILED: Cause = Cause::Failure(Reason::Http(503));

/// Runs a script, a command a line:
///
/// - `members TIER/INTERVAL...` and `order [start_random] [per_request]`, in front of all else
/// - `after MS`: time goes by
/// - `draw NUMBER`: what comes when lots are drawn; `turn TIER NUMBER`: whose turn it is
/// - `mark MEMBER MS`: it is blacklisted for so long; `hold MEMBER MS`: the same by hand; `unmark
///   MEMBER`; `clear MEMBER MS`: it gave a good answer to what was asked that long ago; `back MEMBER`:
///   its probe was not asked
/// - `drain MEMBER`, `undrain MEMBER`
/// - `next WALK`: a try of one of nine walks; `end WALK`: all that are left of it, and the next one
///   under this number is new; `pin WALK MEMBER`: a new one, which begins there
/// - `reload 0`: a new configuration takes over; walks go on with it
///
/// Anything else is a comment. What can be seen is compared all the time.
fn check_script(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_ascii_whitespace().collect())
        .collect();
    let head = |word: &str| {
        let mut heads = lines.iter().filter(|line| line.first() == Some(&word));
        heads.next().map_or(&[][..], |line| &line[1..])
    };
    let mut members: Vec<(u32, u64)> = head("members")
        .iter()
        .filter_map(|word| word.split_once('/'))
        .filter_map(|(tier, interval)| Some((tier.parse().ok()?, interval.parse().ok()?)))
        .collect();
    members.sort_by_key(|(tier, _)| *tier);
    let ranks: Vec<u32> = members.iter().map(|(tier, _)| *tier).collect();
    let intervals = members.iter().map(|(_, interval)| *interval).collect();
    let order = Order {
        start_random: head("order").contains(&"start_random"),
        per_request: head("order").contains(&"per_request"),
    };
    let plan = Plan::new(&ranks, intervals, order, 0).unwrap();
    let mut memory = Memory::of(&plan);
    let mut model = Model {
        plan: plan.clone(),
        members: vec![Member::default(); members.len()],
        turns: vec![0; plan.tiers.len()],
        now: 1,
        draw: 0,
    };
    let mut walks = BTreeMap::new();
    for line in &lines {
        let argument = |n: usize| line.get(n).and_then(|word| word.parse::<u64>().ok());
        if let (Some(word), Some(first)) = (line.first(), argument(1)) {
            let second = argument(2).unwrap_or(0);
            command(&mut memory, &mut model, &mut walks, (word, first, second));
            compare(&memory.state(), &model, line);
        }
    }
}

type Running = (Walk, ModelWalk, Vec<usize>);

fn command(
    memory: &mut Memory,
    model: &mut Model,
    walks: &mut BTreeMap<u64, Running>,
    (word, first, second): (&str, u64, u64),
) {
    let state = memory.state();
    let plan = model.plan.clone();
    let now = model.now;
    // One that is not there must do no harm.
    let member = usize::try_from(first).unwrap_or(usize::MAX);
    let mut nobody = Member::default();
    let known = model.members.get_mut(member).unwrap_or(&mut nobody);
    match word {
        "after" => model.now = now.saturating_add(first.min(1 << 40)),
        "draw" => model.draw = first,
        "turn" => {
            if let Some(turn) = model.turns.get_mut(member) {
                *turn = second;
                state.tiers[member].set_turn(second);
            }
        }
        "mark" | "hold" => {
            let by_hand = word == "hold";
            let until = now.saturating_add(second.min(1 << 40));
            let cause = if by_hand { Cause::ByHand } else { FAILED };
            state.mark(&plan, member, cause, now, until);
            let old = known.mark.as_ref();
            if by_hand || !old.is_some_and(|old| old.by_hand && old.until > until) {
                known.mark = Some(Mark {
                    by_hand,
                    made: now,
                    first_until: until,
                    until,
                });
            }
        }
        "unmark" => {
            state.unmark(member, now);
            known.mark = None;
        }
        "clear" => {
            let asked = now.saturating_sub(second);
            state.clear(member, now, asked);
            known.mark = known.mark.take().filter(|mark| {
                let lasts = mark.by_hand && !mark.is_probed();
                lasts || mark.made > asked
            });
        }
        "back" => {
            // Only he who has made a probe gives it back.
            if let Some(mark) = known.mark.as_mut().filter(|mark| mark.is_probed()) {
                state.give_back_probe(&plan, member, mark.until, now);
                mark.until = now;
            }
        }
        "drain" | "undrain" => {
            let draining = word == "drain";
            let changed = state.set_draining(&plan, member, draining, now);
            let is_known = member < plan.intervals.len();
            assert_eq!(changed, is_known && known.draining != draining);
            known.draining = draining;
        }
        "next" => {
            step(&state, model, walks.entry(first % 9).or_default());
        }
        "end" => {
            let mut walk = walks.remove(&(first % 9)).unwrap_or_default();
            let explained = explained(&state, model);
            let is_new = walk.2.is_empty() && walk.1.last_resort.is_none();
            while step(&state, model, &mut walk) {}
            if is_new && !plan.order.start_random {
                assert_eq!(explained, walk.2, "explained before");
            }
        }
        "pin" => {
            let member = usize::try_from(second).unwrap_or(usize::MAX);
            let mut walk = Walk::default();
            let got = walk.start_at(&plan, member);
            let want = model.pinned(member);
            assert_eq!(got.map(|t| t.member), want.as_ref().map(|_| member), "pin");
            if let Some(want) = want {
                walks.insert(first % 9, (walk, want, vec![member]));
            }
        }
        "reload" => {
            let new = Memory::of(&plan);
            for (tier, old) in new.tiers.iter().zip(&memory.tiers) {
                tier.set_turn(old.turn());
            }
            for (member, known) in model.members.iter_mut().enumerate() {
                new.state().take_over(&plan, member, &state, member);
                let keeps = |mark: &Mark| mark.by_hand || plan.interval(member) > 0;
                known.mark = known.mark.take().filter(keeps);
            }
            *memory = new;
        }
        _ => {}
    }
}

/// What `explain()` says of a walk that began now: the members that it would visit.
fn explained(state: &State<'_>, model: &Model) -> Vec<usize> {
    let mut visited = Vec::new();
    let mut seen = Vec::new();
    let last_resort = explain(&model.plan, state, model.now, |step| {
        seen.push(step.member);
        let Member { mark, draining } = &model.members[step.member];
        let is_over = mark.as_ref().is_some_and(|mark| mark.until <= model.now);
        let why = match (draining, mark, is_over, model.any_usable()) {
            (true, ..) => Why::Draining,
            (_, None, ..) => Why::Usable,
            (.., false) => Why::LastResort,
            (_, _, true, _) => Why::Probe,
            _ => Why::Blacklisted,
        };
        assert_eq!(step.why, why, "{step:?}");
        if let Some(position) = step.position {
            visited.push(step.member);
            assert_eq!(position as usize, visited.len());
        }
    });
    assert_eq!(last_resort, !model.any_usable());
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..model.members.len()), "each once");
    visited
}

/// What is known of the members, and the next upstream of a walk that begins now.
fn compare(state: &State<'_>, model: &Model, line: &[&str]) {
    for (member, known) in model.members.iter().enumerate() {
        let what = format!("member {member} after {line:?}");
        assert_eq!(state.is_marked(member), known.mark.is_some(), "{what}");
        assert_eq!(state.is_draining(member), known.draining, "{what}");
        let usable = model.is_usable(member);
        assert_eq!(state.is_usable(member, model.now), usable, "{what}");
        if let Some(mark) = &known.mark {
            assert_eq!(state.until(member), mark.until, "{what}");
            let cause = if mark.by_hand { Cause::ByHand } else { FAILED };
            assert_eq!(state.cause(member), Some(cause), "{what}");
        }
    }
    let preview = Walk::preview(&model.plan, state, model.now, || model.draw);
    assert_eq!(preview, model.preview(), "a preview after {line:?}");
}

fn step(state: &State<'_>, model: &mut Model, (walk, model_walk, visited): &mut Running) -> bool {
    let (now, draw) = (model.now, model.draw);
    let got = walk.next(&model.plan, state, now, || draw);
    let want = model.next(model_walk);
    assert_eq!(
        got.map(|t| (t.member, t.probe, t.last_resort)),
        want,
        "at {now} after {visited:?}"
    );
    for (tier, turn) in state.tiers.iter().zip(&model.turns) {
        // Without turns the model's count means nothing.
        let takes_turns = !model.plan.order.per_request;
        assert!(!takes_turns || tier.turn() == *turn, "a turn");
    }
    if let Some(next) = got {
        assert!(!visited.contains(&next.member), "an upstream twice");
        visited.push(next.member);
    }
    assert_eq!(walk.visited() as usize, visited.len());
    got.is_some()
}

fn random_script(random: &mut StdRng) -> Vec<u8> {
    // Long tiers too: marks are kept in words of 64.
    let size = [1, 2, 5, 9, 63, 64, 65, 200][random.random_range(0..8)];
    let tiers = random.random_range(1..5);
    let members = (0..size).map(|_| {
        let interval = [0, 1, 100, 1000, 60_000][random.random_range(0..5)];
        format!(" {}/{interval}", random.random_range(0..tiers))
    });
    let mut script = format!("members{}\n", members.collect::<String>());
    script += [
        "",
        "order per_request\n",
        "order start_random per_request\n",
    ][random.random_range(0..3)];
    let mut script = script.into_bytes();
    // What is likely to be marked as a whole.
    let word = ["mark", "hold", "drain", "turn"][random.random_range(0..4)];
    let time = random.random_range(0..3000);
    for member in 0..size {
        script.extend(format!("{word} {member} {time}\n").bytes());
    }
    for _ in 0..random.random_range(1..120) {
        script.extend(random_line(random));
        script.push(b'\n');
    }
    script
}

fn random_line(random: &mut StdRng) -> Vec<u8> {
    let member = match random.random_range(0..20) {
        0 => random.random_range(0..=u64::MAX),
        1..=4 => random.random_range(0..201),
        _ => random.random_range(0..9),
    };
    let time = match random.random_range(0..20) {
        0 => random.random_range(0..=u64::MAX),
        1..=3 => random.random_range(0..100_000),
        4 => 0,
        _ => random.random_range(0..1500),
    };
    let walk = random.random_range(0..3);
    let line = match random.random_range(0..24) {
        0..=2 => format!("after {time}"),
        3 => format!("draw {time}"),
        4 => format!("turn {} {time}", random.random_range(0..5)),
        5..=7 => format!("mark {member} {time}"),
        8 => format!("hold {member} {time}"),
        9 => format!("unmark {member}"),
        10 => format!("clear {member} {time}"),
        11 => format!("back {member}"),
        12 | 13 => format!("drain {member}"),
        14 => format!("undrain {member}"),
        15..=18 => format!("next {walk}"),
        19..=21 => format!("end {walk}"),
        22 => format!("pin {walk} {member}"),
        _ => "reload 0".to_string(),
    };
    line.into_bytes()
}

// Workers share the state without a lock.

#[test]
fn of_many_walks_at_once_one_takes_the_probe_and_each_takes_a_turn() {
    const WORKERS: usize = 4;
    const ROUNDS: u64 = 2000;
    let plan = Plan::new(&[0; 70], vec![100; 70], Order::default(), 0).unwrap();
    let memory = Memory::of(&plan);
    let state = memory.state();
    // All but the last one are marked, so that each walk begins with it or with probes.
    (0..69).for_each(|member| state.mark(&plan, member, FAILED, 1, 100));
    let probes: Vec<usize> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut probes = Vec::new();
                    for _ in 0..ROUNDS {
                        let next = Walk::default().next(&plan, &state, 100, || 0).unwrap();
                        assert!(!next.last_resort && (next.probe || next.member == 69));
                        probes.extend(next.probe.then_some(next.member));
                    }
                    probes
                })
            })
            .collect();
        let results = workers.into_iter().map(|worker| worker.join().unwrap());
        results.flatten().collect()
    });
    let mut once = probes.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), probes.len(), "a member was probed twice");
    assert_eq!(once, Vec::from_iter(0..69), "a member was not probed");
    assert_eq!(memory.tiers[0].turn(), ROUNDS * WORKERS as u64);
}

// Words.

/// What a word means, said plainly.
fn model_word(text: &[u8]) -> Option<Word> {
    let text = str::from_utf8(text).ok()?;
    let status = |text: &str| {
        let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u16>().ok().filter(|_| is_number)?;
        (number == 101 || (200..=599).contains(&number)).then_some(number)
    };
    let class = |text: &str| {
        let digit = text.strip_suffix("xx").filter(|digit| digit.len() == 1)?;
        let first = digit.parse::<u16>().ok()? * 100;
        (200..=500).contains(&first).then_some((first, first + 99))
    };
    let range = |text: &str| {
        let (low, high) = text.split_once('-')?;
        let (low, high) = (status(low)?, status(high)?);
        (low <= high && (low >= 200 || high == 101)).then_some((low, high))
    };
    match text {
        "error" => Some(Word::Error),
        "timeout" => Some(Word::Timeout),
        "invalid_header" => Some(Word::InvalidHeader),
        "non_idempotent" => Some(Word::NonIdempotent),
        _ => status(text)
            .map(|status| (status, status))
            .or_else(|| class(text))
            .or_else(|| range(text))
            .map(|(low, high)| Word::Range(low, high)),
    }
}

fn model_matches(word: Word, answer: Answer) -> bool {
    match word {
        Word::Range(low, high) => (low..=high).contains(&answer.status()),
        Word::Error => [Answer::Made(502), Answer::InvalidHeader].contains(&answer),
        Word::Timeout => answer == Answer::Made(504),
        Word::InvalidHeader => answer == Answer::InvalidHeader,
        Word::NonIdempotent => false,
    }
}

/// Every answer that there is, and some that there are not.
fn answers() -> impl Iterator<Item = Answer> {
    let statuses = [0, 1, 99, 600, 999, u16::MAX].into_iter().chain(100..600);
    let both = statuses.flat_map(|status| [Answer::Own(status), Answer::Made(status)]);
    both.chain([Answer::InvalidHeader])
}

/// A word a line.
fn check_words(input: &[u8]) {
    let mut set = Statuses::default();
    let mut words: Vec<Word> = Vec::new();
    for text in split(input) {
        let shown = String::from_utf8_lossy(text);
        let parsed = Word::parse(text).ok();
        assert_eq!(parsed, model_word(text), "{shown:?}");
        let Some(word) = parsed else { continue };
        let in_set = |answer| words.iter().any(|word| model_matches(*word, answer));
        let is_covered = match word {
            Word::NonIdempotent => words.contains(&word),
            _ => answers()
                .filter(|answer| model_matches(word, *answer))
                .all(in_set),
        };
        assert_eq!(set.covers(word), is_covered, "{shown:?} after {words:?}");
        set.add(word);
        words.push(word);
    }
    for answer in answers() {
        let wanted = words.iter().any(|word| model_matches(*word, answer));
        assert_eq!(set.matches(answer), wanted, "{answer:?} in {words:?}");
        let reason = answer.reason();
        let plain = [Reason::Error, Reason::Timeout].contains(&reason);
        assert!(plain || reason == Reason::Http(answer.status()));
        assert_eq!(Reason::from_code(reason.code()), Some(reason));
    }
    assert_eq!(set.non_idempotent(), words.contains(&Word::NonIdempotent));
}

fn random_words(random: &mut StdRng) -> Vec<u8> {
    let words: Vec<Vec<u8>> = (0..random.random_range(1..12))
        .map(|_| random_word(random))
        .collect();
    words.join(&b'\n')
}

fn random_word(random: &mut StdRng) -> Vec<u8> {
    const KNOWN: [&str; 12] = [
        "error",
        "timeout",
        "invalid_header",
        "non_idempotent",
        "5xx",
        "2xx",
        "101",
        "502",
        "504",
        "500-504",
        "101-101",
        "200-599",
    ];
    const BYTES: &[u8] = b"0123456789-x_ +.eE\0\xff";
    let status = |random: &mut StdRng| random.random_range(90..620).to_string();
    let mut word = match random.random_range(0..4) {
        0 => KNOWN[random.random_range(0..KNOWN.len())].to_string(),
        1 => status(random),
        2 => status(random) + "-" + &status(random),
        _ => format!("{}xx", random.random_range(0..10)),
    }
    .into_bytes();
    for _ in 0..[0, 0, 1, 3][random.random_range(0..4)] {
        let at = pick(random, word.len());
        let byte = BYTES[random.random_range(0..BYTES.len())];
        match random.random_range(0..3) {
            0 if !word.is_empty() => drop(word.remove(at)),
            1 if !word.is_empty() => word[at] = byte,
            _ => word.insert(at, byte),
        }
    }
    word
}
