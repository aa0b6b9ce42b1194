//! Request bodies that are passed on while they come in.

use super::walking::Walking;
use crate::nginx::{Flags, Upstream, OK};

/// Whether anything of the request was sent to a server of the try at hand. `request_sent` alone
/// does not tell: nginx resets it for each server.
pub fn was_sent(walking: &Walking, upstream: Upstream) -> bool {
    let first = walking
        .tries()
        .last()
        .map_or(0, |record| record.first as usize);
    upstream.fields().request_sent() != 0
        || walking
            .request
            .states()
            .iter()
            .skip(first)
            .any(|state| state.bytes_sent > 0)
}

/// Has this try read the body as the first one did: nginx takes a body that was begun for one
/// that is complete, and would send what is there.
pub fn resume_unbuffered(walking: &mut Walking, upstream: Upstream) -> Option<()> {
    if !walking.unbuffered {
        return Some(());
    }
    let request = walking.request;
    request.set_flags(
        Flags::REQUEST_BODY_NO_BUFFERING,
        Flags::REQUEST_BODY_NO_BUFFERING,
    );
    // SAFETY: r->request_body is NULL or lives in the request's pool.
    if let Some(body) = unsafe { request.fields().request_body.as_ref() } {
        upstream.fields_mut().request_bufs = body.bufs;
    }
    let create = upstream.fields().create_request?;
    // SAFETY: the gateway module's own, as nginx called it a moment ago.
    (unsafe { create(request.as_ptr()) } == OK).then_some(())
}
