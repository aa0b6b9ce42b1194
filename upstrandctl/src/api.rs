//! What `upstrand_api` answers: see contrib/schema/status.schema.json. Unknown members are skipped,
//! and what only figures in tables may be missing, so that other versions of the module do.

use std::collections::BTreeMap;

use serde::Deserialize;

/// All upstrands by name.
pub type Upstrands = BTreeMap<String, Upstrand>;

#[derive(Debug, Deserialize)]
pub struct Upstrand {
    /// `None`: the figures are one worker's.
    pub zone: Option<String>,
    pub upstreams: Vec<Upstream>,
}

#[derive(Debug, Deserialize)]
pub struct Upstream {
    pub name: String,
    pub tier: u64,
    pub state: String,
    #[serde(default)]
    pub reason: String,
    pub since: Option<String>,
    #[serde(default)]
    pub draining: bool,
    pub blacklisted_until: Option<String>,
    #[serde(default)]
    pub tries: u64,
    #[serde(default)]
    pub failures: BTreeMap<String, u64>,
    #[serde(default)]
    pub peers: Vec<Peer>,
}

#[derive(Debug, Deserialize)]
pub struct Peer {
    pub state: String,
    #[serde(default)]
    pub active: u64,
}

#[derive(Debug, Deserialize)]
pub struct Explanation {
    pub upstrand: String,
    pub zone: Option<String>,
    pub order: String,
    pub last_resort: bool,
    pub upstreams: Vec<Visit>,
}

/// An upstream that a walk would visit, or pass by.
#[derive(Debug, Deserialize)]
pub struct Visit {
    pub name: String,
    pub tier: u64,
    pub position: Option<u64>,
    #[serde(default)]
    pub reason: String,
}

#[derive(Debug, Deserialize)]
pub struct ErrorDocument {
    pub error: ErrorText,
}

#[derive(Debug, Deserialize)]
pub struct ErrorText {
    pub text: String,
}

impl Upstrand {
    /// Whether a walk has somewhere to go to that is not known to be out.
    pub fn usable(&self) -> bool {
        self.upstreams.iter().any(Upstream::usable)
    }

    /// Those of the first tier that has any that are up.
    pub fn serving(&self) -> Vec<&Upstream> {
        let up = |upstream: &&Upstream| upstream.state == "up";
        let tier = self.upstreams.iter().filter(up).map(|it| it.tier).min();
        let serve = |upstream: &&Upstream| up(upstream) && Some(upstream.tier) == tier;
        self.upstreams.iter().filter(serve).collect()
    }
}

impl Upstream {
    /// Up, or to be asked by the next request, which finds out.
    pub fn usable(&self) -> bool {
        matches!(self.state.as_str(), "up" | "checking")
    }

    /// Tries that did not end with the final answer.
    pub fn failed(&self) -> u64 {
        let add = |sum: u64, count: &u64| sum.saturating_add(*count);
        self.failures.values().fold(0, add)
    }

    /// Connections at work.
    pub fn active(&self) -> u64 {
        let add = |sum: u64, peer: &Peer| sum.saturating_add(peer.active);
        self.peers.iter().fold(0, add)
    }
}
