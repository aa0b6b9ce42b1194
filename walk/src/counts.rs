//! What is counted of tries and walks. All of it is atomics, as the rest of the state is.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Reason;

/// Upper bounds of the durations that are told apart, in ms; longer ones follow.
pub const DURATIONS: [u64; 11] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

/// Counts of one upstream in an upstrand.
#[repr(C)]
#[derive(Debug, Default)]
pub struct MemberCounts {
    /// Tries by `Reason::ENDS`.
    ends: [AtomicU64; Reason::ENDS.len()],
    /// Failures by `Reason::CAUSES`.
    failures: [AtomicU64; Reason::CAUSES.len()],
    /// Answers by the class of their status, 1xx first.
    classes: [AtomicU64; 5],
    /// What all tries took, in ms.
    took: AtomicU64,
    /// Tries by how long they took, see `DURATIONS`.
    durations: [AtomicU64; DURATIONS.len() + 1],
}

impl MemberCounts {
    /// Counts a try that has ended: why, the status of its answer, what the answer fails by, and
    /// what it took in ms.
    #[inline(always)]
    pub fn count(&self, end: Reason, status: Option<u16>, failure: Option<Reason>, took: u64) {
        add(self.ends.get(end.end()));
        if let Some(status) = status {
            add(self.classes.get(usize::from(status / 100).wrapping_sub(1)));
        }
        if let Some(failure) = failure {
            add(self.failures.get(failure.cause()));
        }
        if took <= DURATIONS[0] {
            add(self.durations.first());
        } else {
            self.count_longer(took);
        }
        if took > 0 {
            self.took.fetch_add(took, Relaxed);
        }
    }

    #[cold]
    fn count_longer(&self, took: u64) {
        let slot = DURATIONS.iter().position(|bound| took <= *bound);
        add(self.durations.get(slot.unwrap_or(DURATIONS.len())));
    }

    /// Tries that have ended.
    pub fn tries(&self) -> u64 {
        sum(&self.ends)
    }

    /// Tries by the word of why they ended.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Reason::ENDS.into_iter().zip(self.ends.iter().map(read))
    }

    /// Failures by the word of their cause.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Reason::CAUSES
            .into_iter()
            .zip(self.failures.iter().map(read))
    }

    /// Answers by the class of their status.
    pub fn classes(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let words = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        words.into_iter().zip(self.classes.iter().map(read))
    }

    /// What all tries took, in ms.
    pub fn took(&self) -> u64 {
        read(&self.took)
    }

    /// Tries that took no longer than each of `DURATIONS`, and all.
    pub fn durations(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let bounds = DURATIONS.into_iter().map(Some).chain([None]);
        let mut all = 0u64;
        bounds.zip(&self.durations).map(move |(bound, tries)| {
            all = all.wrapping_add(read(tries));
            (bound, all)
        })
    }

    /// Goes on from what another one has counted.
    pub fn take_over(&self, old: &MemberCounts) {
        take_over(&self.ends, &old.ends);
        take_over(&self.failures, &old.failures);
        take_over(&self.classes, &old.classes);
        take_over(&self.durations, &old.durations);
        self.took.store(read(&old.took), Relaxed);
    }
}

/// Counts of an upstrand.
#[repr(C)]
#[derive(Debug, Default)]
pub struct UpstrandCounts {
    walks: AtomicU64,
    failovers: AtomicU64,
    exhausted: AtomicU64,
    intercepted: AtomicU64,
    deadline_exceeded: AtomicU64,
    reserved: [AtomicU64; 3],
}

impl UpstrandCounts {
    /// A walk begins.
    pub fn count_walk(&self) {
        add(Some(&self.walks));
    }

    /// A walk goes on to a further upstream.
    pub fn count_failover(&self) {
        add(Some(&self.failovers));
    }

    /// A walk ends.
    pub fn count_end(&self, end: Reason) {
        match end {
            Reason::Exhausted => add(Some(&self.exhausted)),
            Reason::Deadline => add(Some(&self.deadline_exceeded)),
            _ => (),
        }
    }

    /// A walk's final answer is intercepted.
    pub fn count_interception(&self) {
        add(Some(&self.intercepted));
    }

    /// Walks that have begun.
    pub fn walks(&self) -> u64 {
        read(&self.walks)
    }

    /// Times that a walk went on to a further upstream.
    pub fn failovers(&self) -> u64 {
        read(&self.failovers)
    }

    /// Walks that ended with a failure, as no upstream was left.
    pub fn exhausted(&self) -> u64 {
        read(&self.exhausted)
    }

    /// Walks whose final answer was intercepted.
    pub fn intercepted(&self) -> u64 {
        read(&self.intercepted)
    }

    /// Walks that the deadline ended.
    pub fn deadline_exceeded(&self) -> u64 {
        read(&self.deadline_exceeded)
    }

    /// Goes on from what another one has counted.
    pub fn take_over(&self, old: &UpstrandCounts) {
        self.walks.store(old.walks(), Relaxed);
        self.failovers.store(old.failovers(), Relaxed);
        self.exhausted.store(old.exhausted(), Relaxed);
        self.intercepted.store(old.intercepted(), Relaxed);
        self.deadline_exceeded
            .store(old.deadline_exceeded(), Relaxed);
    }
}

#[inline]
fn add(count: Option<&AtomicU64>) {
    if let Some(count) = count {
        count.fetch_add(1, Relaxed);
    }
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Relaxed)
}

fn sum(counts: &[AtomicU64]) -> u64 {
    counts.iter().map(read).fold(0, u64::wrapping_add)
}

fn take_over(new: &[AtomicU64], old: &[AtomicU64]) {
    for (new, old) in new.iter().zip(old) {
        new.store(read(old), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_counted_by_end_class_cause_and_duration() {
        let counts = MemberCounts::default();
        counts.count(Reason::Final, Some(200), None, 5);
        counts.count(Reason::Http(503), Some(503), Some(Reason::Http(503)), 6);
        counts.count(Reason::Exhausted, Some(504), Some(Reason::Timeout), 60_000);
        counts.count(Reason::Aborted, None, None, 0);
        counts.count(Reason::Final, Some(99), None, 0);
        counts.count(Reason::Final, Some(600), None, 0);
        assert_eq!(counts.tries(), 6);
        let some = |(word, n): (&'static str, u64)| (n > 0).then_some((word, n));
        let ends: Vec<_> = counts.ends().filter_map(some).collect();
        let expected = [("final", 3), ("http", 1), ("exhausted", 1), ("aborted", 1)];
        assert_eq!(ends, expected);
        let failures: Vec<_> = counts.failures().filter_map(some).collect();
        assert_eq!(failures, [("http", 1), ("timeout", 1)]);
        let classes: Vec<_> = counts.classes().filter_map(some).collect();
        assert_eq!(classes, [("2xx", 1), ("5xx", 2)]);
        assert_eq!(counts.took(), 60_011);
        let durations: Vec<_> = counts.durations().collect();
        assert_eq!(durations.first(), Some(&(Some(5), 4)));
        assert_eq!(durations.get(1), Some(&(Some(10), 5)));
        assert_eq!(durations.get(10), Some(&(Some(10_000), 5)));
        assert_eq!(durations.last(), Some(&(None, 6)));

        let new = MemberCounts::default();
        new.take_over(&counts);
        assert!(new.ends().eq(counts.ends()) && new.durations().eq(counts.durations()));
        assert!(new.failures().eq(counts.failures()) && new.classes().eq(counts.classes()));
        assert_eq!(new.took(), counts.took());
    }

    #[test]
    fn walks_are_counted() {
        let counts = UpstrandCounts::default();
        (0..5).for_each(|_| counts.count_walk());
        (0..4).for_each(|_| counts.count_failover());
        let ends = [Reason::Exhausted, Reason::Deadline, Reason::Final];
        ends.iter().for_each(|end| counts.count_end(*end));
        counts.count_interception();
        counts.count_end(Reason::Exhausted);
        let new = UpstrandCounts::default();
        new.take_over(&counts);
        let seen = |counts: &UpstrandCounts| {
            [
                counts.walks(),
                counts.failovers(),
                counts.exhausted(),
                counts.deadline_exceeded(),
                counts.intercepted(),
            ]
        };
        assert_eq!(seen(&counts), [5, 4, 2, 1, 1]);
        assert_eq!(seen(&new), seen(&counts));
    }
}
