//! The rules of a walk, each by an example. fuzz.rs compares walks with a model of the rules.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::sync::atomic::AtomicU64;

use walk::{
    explain, member_words, Cause, MemberCounts, MemberState, Order, Plan, Reason, State, TierState,
    Try, UpstrandCounts, Walk, Why,
};

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

fn plan(ranks: &[u32], interval: u64, order: Order) -> Plan {
    Plan::new(ranks, vec![interval; ranks.len()], order, 0).unwrap()
}

fn all(plan: &Plan, memory: &Memory, now: u64) -> Vec<Try> {
    let mut walk = Walk::default();
    let mut tries = Vec::new();
    while let Some(next) = walk.next(plan, &memory.state(), now, || 0) {
        tries.push(next);
        assert!(tries.len() <= plan.intervals.len(), "the walk does not end");
    }
    tries
}

const FAILED: Cause = Cause::Failure(Reason::Http(503));

fn members(tries: &[Try]) -> Vec<usize> {
    tries.iter().map(|t| t.member).collect()
}

const PER_REQUEST: Order = Order {
    start_random: false,
    per_request: true,
};

#[test]
fn tiers_are_walked_in_order_and_wrap_around_from_the_turn() {
    let plan = plan(&[0, 0, 0, 1, 1, 7], 0, Order::default());
    let memory = Memory::of(&plan);
    assert_eq!(members(&all(&plan, &memory, 1)), [0, 1, 2, 3, 4, 5]);
    assert_eq!(members(&all(&plan, &memory, 1)), [1, 2, 0, 4, 3, 5]);
    assert_eq!(members(&all(&plan, &memory, 1)), [2, 0, 1, 3, 4, 5]);
}

#[test]
fn turns_are_fair() {
    let plan = plan(&[0; 5], 0, Order::default());
    let memory = Memory::of(&plan);
    let mut first = [0; 5];
    for _ in 0..100 {
        let next = Walk::default()
            .next(&plan, &memory.state(), 1, || 0)
            .unwrap();
        first[next.member] += 1;
    }
    assert_eq!(first, [20; 5]);
}

#[test]
fn a_higher_tier_takes_a_turn_only_when_it_is_entered() {
    let plan = plan(&[0, 1, 1], 0, Order::default());
    let memory = Memory::of(&plan);
    for _ in 0..3 {
        Walk::default().next(&plan, &memory.state(), 1, || 0);
    }
    assert_eq!(members(&all(&plan, &memory, 1)), [0, 1, 2]);
    assert_eq!(members(&all(&plan, &memory, 1)), [0, 2, 1]);
}

#[test]
fn per_request_takes_no_turns() {
    let plan = plan(&[0, 0, 1, 1], 0, PER_REQUEST);
    let memory = Memory::of(&plan);
    for _ in 0..3 {
        assert_eq!(members(&all(&plan, &memory, 1)), [0, 1, 2, 3]);
    }
}

#[test]
fn a_random_start_is_drawn_for_each_walk() {
    let order = Order {
        start_random: true,
        per_request: true,
    };
    let plan = plan(&[0, 0, 0], 0, order);
    let memory = Memory::of(&plan);
    for draw in 0..9u64 {
        let next = Walk::default()
            .next(&plan, &memory.state(), 1, || draw)
            .unwrap();
        assert_eq!(next.member as u64, draw % 3);
    }
}

#[test]
fn a_mark_is_passed_by_until_it_is_over_and_then_probed_once() {
    let plan = plan(&[0, 0], 100, PER_REQUEST);
    let memory = Memory::of(&plan);
    memory.state().mark(&plan, 0, FAILED, 50, 150);
    assert_eq!(members(&all(&plan, &memory, 149)), [1]);

    let mut first = Walk::default();
    let probe = first.next(&plan, &memory.state(), 150, || 0).unwrap();
    assert!(probe.probe && probe.member == 0);
    let other = Walk::default()
        .next(&plan, &memory.state(), 150, || 0)
        .unwrap();
    assert!(!other.probe && other.member == 1, "a second probe");
    // The probe goes on with the others, if its answer was bad.
    assert_eq!(
        first
            .next(&plan, &memory.state(), 160, || 0)
            .unwrap()
            .member,
        1
    );
    // An answer that never came is asked for again after another interval.
    let again = Walk::default()
        .next(&plan, &memory.state(), 250, || 0)
        .unwrap();
    assert!(again.probe && again.member == 0);
}

#[test]
fn a_good_answer_ends_the_mark_unless_the_mark_is_younger_than_the_question() {
    let plan = plan(&[0, 0], 100, PER_REQUEST);
    let memory = Memory::of(&plan);
    memory.state().mark(&plan, 0, FAILED, 100, 200);
    memory.state().clear(0, 150, 99);
    assert!(memory.state().is_marked(0));
    memory.state().clear(0, 150, 100);
    assert!(!memory.state().is_marked(0));
}

#[test]
fn when_all_are_marked_the_walk_goes_through_all_and_says_so_once() {
    let plan = plan(&[0, 0, 1], 1000, Order::default());
    let memory = Memory::of(&plan);
    for member in 0..3 {
        memory.state().mark(&plan, member, FAILED, 1, 1000);
    }
    let tries = all(&plan, &memory, 10);
    assert_eq!(members(&tries), [0, 1, 2]);
    assert_eq!(
        tries.iter().map(|t| t.last_resort).collect::<Vec<_>>(),
        [true, false, false]
    );
    assert!((0..3).all(|member| memory.state().is_marked(member)));
    assert_eq!(members(&all(&plan, &memory, 10)), [1, 0, 2], "turns go on");
}

#[test]
fn what_is_marked_in_the_middle_of_a_walk_ends_it() {
    let plan = plan(&[0, 0], 1000, PER_REQUEST);
    let memory = Memory::of(&plan);
    let mut walk = Walk::default();
    walk.next(&plan, &memory.state(), 10, || 0).unwrap();
    memory.state().mark(&plan, 0, FAILED, 10, 1010);
    memory.state().mark(&plan, 1, FAILED, 10, 1010);
    assert!(walk.next(&plan, &memory.state(), 11, || 0).is_none());
}

#[test]
fn a_preview_is_what_the_next_walk_asks_first_and_changes_nothing() {
    let plan = plan(&[0, 0, 0, 2], 100, Order::default());
    let memory = Memory::of(&plan);
    let state = memory.state();
    for round in 0..12 {
        let now = round * 40;
        if round == 3 {
            state.mark(&plan, 1, FAILED, now, now + 100);
        }
        let seen = Walk::preview(&plan, &state, now, || 0);
        assert_eq!(Walk::preview(&plan, &state, now, || 0), seen);
        let next = Walk::default().next(&plan, &state, now, || 0);
        assert_eq!(next.map(|t| t.member), seen, "round {round}");
    }
}

#[test]
fn a_pinned_walk_begins_where_it_is_told() {
    let plan = plan(&[0, 0, 0, 1], 0, Order::default());
    let memory = Memory::of(&plan);
    let mut walk = Walk::default();
    assert_eq!(walk.start_at(&plan, 1).unwrap().member, 1);
    let rest: Vec<usize> =
        std::iter::from_fn(|| walk.next(&plan, &memory.state(), 1, || 0).map(|t| t.member))
            .collect();
    assert_eq!(rest, [2, 0, 3]);
    assert!(Walk::default().start_at(&plan, 4).is_none());
}

#[test]
fn no_walk_visits_a_draining_member() {
    let plan = plan(&[0, 0, 1], 100, PER_REQUEST);
    let memory = Memory::of(&plan);
    let state = memory.state();
    assert!(state.set_draining(&plan, 0, true, 10));
    assert!(!state.set_draining(&plan, 0, true, 20), "it was so already");
    assert_eq!(state.members[0].since(), Some(10));
    assert_eq!(members(&all(&plan, &memory, 30)), [1, 2]);
    // Not even the last resort does, nor is it probed.
    for member in 0..3 {
        state.mark(&plan, member, FAILED, 30, 130);
    }
    assert_eq!(members(&all(&plan, &memory, 40)), [1, 2]);
    assert_eq!(members(&all(&plan, &memory, 500)), [1, 2]);
    state.clear(0, 510, 505);
    assert!(state.is_draining(0) && !state.is_usable(0, 510));

    for member in 0..3 {
        state.set_draining(&plan, member, true, 520);
    }
    assert_eq!(members(&all(&plan, &memory, 530)), []);
    assert_eq!(Walk::preview(&plan, &state, 530, || 0), None);
    assert!(state.set_draining(&plan, 2, false, 540));
    assert_eq!(state.members[2].since(), Some(540));
    assert_eq!(members(&all(&plan, &memory, 550)), [2]);
}

#[test]
fn a_mark_made_by_hand_lasts_as_long_as_it_was_told() {
    for interval in [0, 1000] {
        let plan = plan(&[0, 0], interval, PER_REQUEST);
        let memory = Memory::of(&plan);
        let state = memory.state();
        state.mark(&plan, 0, Cause::ByHand, 100, 5000);
        assert_eq!(state.cause(0), Some(Cause::ByHand));
        // Neither a good answer ends it nor a bad one makes it shorter.
        state.clear(0, 300, 200);
        state.mark(&plan, 0, FAILED, 300, 1300);
        assert_eq!(
            (state.cause(0), state.until(0)),
            (Some(Cause::ByHand), 5000)
        );
        assert_eq!(members(&all(&plan, &memory, 4999)), [1]);
        let after = all(&plan, &memory, 5000);
        assert_eq!(members(&after), [0, 1]);
        assert!(after[0].probe);
        state.clear(0, 5010, 5000);
        assert_eq!(state.cause(0), None, "interval {interval}");
        assert_eq!(members(&all(&plan, &memory, 5020)), [0, 1]);
    }
}

#[test]
fn a_probe_that_nobody_was_asked_for_is_given_back() {
    let plan = plan(&[0, 0], 1000, PER_REQUEST);
    let memory = Memory::of(&plan);
    let state = memory.state();
    state.mark(&plan, 0, FAILED, 100, 1100);
    assert!(!state.is_probed(0));
    assert!(all(&plan, &memory, 1100)[0].probe);
    assert!(state.is_probed(0));
    assert_eq!(members(&all(&plan, &memory, 1200)), [1]);
    state.give_back_probe(&plan, 0, 2100, 1300);
    assert!(all(&plan, &memory, 1300)[0].probe);
}

#[test]
fn a_probe_that_is_given_back_ends_no_younger_mark() {
    let plan = plan(&[0, 0], 1000, PER_REQUEST);
    let memory = Memory::of(&plan);
    let state = memory.state();
    state.mark(&plan, 0, FAILED, 100, 1100);
    assert!(state.claim_probe(&plan, 0, 1100));
    assert!(!state.claim_probe(&plan, 0, 1100), "one at a time");
    state.mark(&plan, 0, Cause::ByHand, 1200, 9000);
    state.give_back_probe(&plan, 0, 2100, 1300);
    assert_eq!(state.until(0), 9000);
    assert_eq!(members(&all(&plan, &memory, 1300)), [1]);
}

#[test]
fn a_new_configuration_takes_over_what_was_known() {
    let old_plan = plan(&[0, 0, 0], 1000, PER_REQUEST);
    let old = Memory::of(&old_plan);
    old.state().mark(&old_plan, 0, FAILED, 100, 1100);
    old.state().mark(&old_plan, 1, Cause::ByHand, 100, 3000);
    old.state().set_draining(&old_plan, 2, true, 150);
    old.state().members[2].set_failed(120, Reason::Timeout);
    old.state().counts[2].count(Reason::Final, Some(200), None, 7);

    // Failures mark no longer; what was done by hand stays.
    let new_plan = plan(&[0, 0, 0], 0, PER_REQUEST);
    let new = Memory::of(&new_plan);
    for member in 0..3 {
        new.state()
            .take_over(&new_plan, 2 - member, &old.state(), member);
    }
    let state = new.state();
    assert_eq!(state.cause(2), None);
    assert_eq!(
        (state.cause(1), state.until(1)),
        (Some(Cause::ByHand), 3000)
    );
    assert!(state.is_draining(0) && !state.is_draining(2));
    assert_eq!(state.members[0].since(), Some(150));
    assert_eq!(state.members[0].failed(), Some((120, Reason::Timeout)));
    assert_eq!(state.counts[0].tries(), 1);
    assert_eq!(members(&all(&new_plan, &new, 200)), [2]);
    assert_eq!(members(&all(&new_plan, &new, 3000)), [1, 2]);
}

#[test]
fn explains_why_each_member_is_in_or_out() {
    let plan = Plan::new(&[0, 0, 0, 0, 1, 1], vec![100; 6], PER_REQUEST, 3).unwrap();
    let memory = Memory::of(&plan);
    let state = memory.state();
    state.set_draining(&plan, 0, true, 1);
    state.mark(&plan, 1, FAILED, 10, 110);
    state.mark(&plan, 2, FAILED, 10, 60);
    let said = |now| {
        let mut steps = Vec::new();
        let last_resort = explain(&plan, &state, now, |step| {
            steps.push((step.member, step.position, step.why));
        });
        (steps, last_resort)
    };
    let (steps, last_resort) = said(60);
    assert!(!last_resort);
    assert_eq!(
        steps,
        [
            (0, None, Why::Draining),
            (1, None, Why::Blacklisted),
            (2, Some(1), Why::Probe),
            (3, Some(2), Why::Usable),
            (4, Some(3), Why::Usable),
            (5, None, Why::TooManyTries),
        ]
    );
    for member in 1..6 {
        state.mark(&plan, member, FAILED, 70, 170);
    }
    let (steps, last_resort) = said(80);
    assert!(last_resort);
    assert_eq!(steps[1], (1, Some(1), Why::LastResort));
    assert_eq!(steps[0], (0, None, Why::Draining));
}
