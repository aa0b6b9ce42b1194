//! The nginx side of a walk. A try is a re-entry: the request's content handler runs again, and
//! its `*_pass` is given the name of the next upstream.
//!
//! - `variable`: a pass evaluates the upstrand variable, and the walk begins;
//! - `peer`: nginx has chosen the upstream, and the try runs;
//! - `filter`: the answer's header comes, and the walk goes on or ends;
//! - `reentry`: the next try, or the interception of the last one;
//! - `shortcut`: nginx finds the upstream without a search;
//! - the rest keeps what nginx would do to a single request from happening between two tries.

mod accel;
mod body;
mod buffer;
mod clones;
mod counts;
mod deadline;
mod derived;
mod drain;
mod filter;
mod intercept;
mod peer;
mod reentry;
mod saved;
mod shortcut;
mod subrequest;
mod variable;
mod walking;

pub use accel::wrap_accel_redirect;
pub use body::install as install_body_filter;
pub use derived::wrap_cached_variables;
pub use filter::install as install_filter;
pub use peer::wrap_members;
pub use shortcut::Places;
pub use variable::{dynamic_variable, note_evaluation, upstrand_variable};
pub use walking::{TryRecord, Walking};
