//! Subrequests that repeat their parent's request: slices, and cache updates in the background.

use crate::conf::Upstrand;
use crate::nginx::Request;

use super::walking::Walking;

/// Where the walk of a clone begins.
pub struct Origin {
    /// The member that its parent came to.
    pub member: usize,
    /// It stays there: parts of one body must not come from two upstreams.
    pub pinned: bool,
    /// Its parent asks nobody, and neither is it to.
    pub nobody: bool,
}

/// The origin of a request, if it is a clone of one that walks the same upstrand.
///
/// A background update begins with its parent's upstream, but walks on: with a cache key that
/// does not name the upstream, a dead one would otherwise keep the entry stale for ever.
pub fn origin(request: Request, upstrand: &Upstrand) -> Option<Origin> {
    if request.is_main() {
        return None;
    }
    let parent = request.parent()?;
    let (own, its) = (request.fields(), parent.fields());
    let same_location = own.loc_conf == its.loc_conf
        && own.uri.data == its.uri.data
        && own.content_handler.map(|f| f as usize) == its.content_handler.map(|f| f as usize);
    if !same_location {
        return None;
    }
    let walking = Walking::of(parent).filter(|walking| walking.is_of(upstrand))?;
    if walking.nobody && request.is_background() {
        return None;
    }
    Some(Origin {
        member: walking.member,
        pinned: !request.is_background(),
        nobody: walking.nobody,
    })
}
