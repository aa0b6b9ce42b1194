//! Where upstrands keep their state, from marks to counts: in each worker's own memory, or in a zone shared by all.

mod layout;

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{fence, AtomicU64, Ordering::SeqCst};

use nginx_sys::{
    ngx_cycle, ngx_int_t, ngx_list_part_t, ngx_pagesize, ngx_shm_zone_t, ngx_shmtx_lock,
    ngx_shmtx_t, ngx_shmtx_unlock, ngx_slab_alloc, ngx_slab_pool_t, ngx_time_update, NGX_LOG_EMERG,
};
use walk::{member_words, MemberCounts, MemberState, Plan, State, TierState, UpstrandCounts};

use crate::conf::Upstrand;
use crate::nginx::{
    self, bytes, fault, guard, memory, ConfResult, Place, Pool, Refused, Text, ERROR, OK,
};

/// nginx's own lower bound for zones, in pages.
const LEAST_PAGES: usize = 8;

/// Where an upstrand's state is.
// Set while a configuration is read, when nobody looks at it.
pub struct Memory(Cell<State<'static>>);

#[derive(Clone, Copy)]
struct Parts {
    tiers: NonNull<TierState>,
    tier_count: usize,
    members: NonNull<MemberState>,
    member_count: usize,
    counts: NonNull<MemberCounts>,
    totals: NonNull<UpstrandCounts>,
    marked: NonNull<AtomicU64>,
    draining: NonNull<AtomicU64>,
}

impl Parts {
    /// # Safety
    ///
    /// All parts are live, hold a state, and outlive it.
    unsafe fn state<'a>(self) -> State<'a> {
        let words = member_words(self.member_count);
        // SAFETY: as the caller says; whoever else changes them does so through atomics.
        unsafe {
            State {
                tiers: core::slice::from_raw_parts(self.tiers.as_ptr(), self.tier_count),
                members: core::slice::from_raw_parts(self.members.as_ptr(), self.member_count),
                counts: core::slice::from_raw_parts(self.counts.as_ptr(), self.member_count),
                totals: self.totals.as_ref(),
                marked: core::slice::from_raw_parts(self.marked.as_ptr(), words),
                draining: core::slice::from_raw_parts(self.draining.as_ptr(), words),
            }
        }
    }
}

impl Memory {
    /// State in the configuration's pool: each worker that is forked then has its own copy.
    pub fn private(pool: Pool, plan: &Plan) -> Option<Memory> {
        let (tier_count, member_count) = (plan.tiers.len(), plan.intervals.len());
        let parts = Parts {
            tiers: pool.zeroed(tier_count)?,
            tier_count,
            members: pool.zeroed(member_count)?,
            member_count,
            counts: pool.zeroed(member_count)?,
            totals: pool.zeroed(1)?,
            marked: pool.zeroed(member_words(member_count))?,
            draining: pool.zeroed(member_words(member_count))?,
        };
        // SAFETY: zeroed memory is a state, and lives as long as the configuration.
        Some(Memory(Cell::new(unsafe { parts.state() })))
    }

    /// The state.
    pub fn state(&self) -> &State<'_> {
        // SAFETY: all parts live as long as the configuration, in its pool or in its zone; the cell
        // is set while nobody holds the reference.
        unsafe { &*self.0.as_ptr() }
    }

    /// Draws the turns by lot, as `start_random` has it. The salt stands for the seed that the
    /// random numbers of a master process lack.
    pub fn shuffle(&self, plan: &Plan, salt: u64) {
        if plan.order.start_random && !plan.order.per_request {
            for tier in self.state().tiers {
                // A turn keeps room for counting on.
                tier.set_turn((nginx::random() ^ salt) >> 1);
            }
        }
    }
}

/// A zone of upstrands.
pub struct Zone {
    shm_zone: *mut ngx_shm_zone_t,
    place: Place,
    upstrands: Vec<*const Upstrand>,
}

impl Zone {
    /// A zone that has no upstrand yet.
    pub fn new(shm_zone: *mut ngx_shm_zone_t, place: Place) -> Zone {
        Zone {
            shm_zone,
            place,
            upstrands: Vec::new(),
        }
    }

    /// Adds an upstrand; it is boxed in the same configuration as the zone.
    pub fn add(&mut self, upstrand: *const Upstrand) -> ConfResult {
        memory::push(&mut self.upstrands, upstrand)
    }

    /// nginx's zone.
    pub fn shm_zone(&self) -> *mut ngx_shm_zone_t {
        self.shm_zone
    }

    /// The line that says its size, or the first one that names it.
    pub fn place(&self) -> Place {
        self.place
    }

    /// See `place()`.
    pub fn set_place(&mut self, place: Place) {
        self.place = place;
    }

    fn fields(&self) -> &ngx_shm_zone_t {
        // SAFETY: it lives as long as the configuration.
        unsafe { &*self.shm_zone }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        bytes(&self.fields().shm.name)
    }

    /// Its size in bytes; 0: no line says it.
    pub fn size(&self) -> usize {
        self.fields().shm.size
    }

    fn upstrands(&self) -> impl Iterator<Item = &Upstrand> + Clone {
        // SAFETY: boxed in the same configuration as the zone.
        self.upstrands.iter().map(|upstrand| unsafe { &**upstrand })
    }

    /// The size that its upstrands need, in bytes, with what the slab allocator takes for itself.
    pub fn needed(&self) -> usize {
        // SAFETY: set once, when nginx starts.
        let page = unsafe { ngx_pagesize };
        let pages = layout::size(self.upstrands()).div_ceil(page.max(1));
        // The pool's own page, one for its messages, one lost to alignment, and a descriptor of
        // 24 bytes for each page.
        let descriptors = pages.saturating_mul(24).div_ceil(page.max(1));
        pages
            .saturating_add(descriptors)
            .saturating_add(4)
            .max(LEAST_PAGES)
            .saturating_mul(page)
    }
}

/// Lays out a zone, and takes over what the zone of the same name in the running configuration
/// holds.
///
/// # Safety
///
/// Called by nginx for a zone whose `data` is a Zone.
pub unsafe extern "C" fn init(shm_zone: *mut ngx_shm_zone_t, _old: *mut c_void) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as the caller says.
        let zone = unsafe {
            shm_zone
                .as_ref()
                .and_then(|z| z.data.cast::<Zone>().as_ref())
        };
        match zone.map(fill) {
            Some(Ok(())) => OK,
            _ => ERROR,
        }
    })
}

fn fill(zone: &Zone) -> ConfResult {
    fault::point("zone");
    let pool = zone.fields().shm.addr.cast::<ngx_slab_pool_t>();
    let size = layout::size(zone.upstrands());
    // SAFETY: nginx has made the zone a slab pool.
    let memory = unsafe { ngx_slab_alloc(pool, size) };
    let Some(memory) = NonNull::new(memory.cast::<u8>()) else {
        nginx::log_at(
            NGX_LOG_EMERG,
            nginx::cycle_log(),
            zone.place(),
            format_args!(
                "zone \"{}\" is too small: its upstrands need {}k",
                Text(zone.name()),
                zone.needed().div_ceil(1024)
            ),
        );
        return Err(Refused::Logged);
    };
    // SAFETY: fresh memory of this size; nobody else knows it yet.
    unsafe { ptr::write_bytes(memory.as_ptr(), 0, size) };

    let old = old_zone(zone.name()).filter(|old| layout::is_zone(*old));
    if let Some((memory, _)) = old {
        // Reading the configuration may have taken long.
        // SAFETY: called as in nginx's own loops, from the one thread.
        unsafe { ngx_time_update() };
        // Before anything is read: what is changed from here on may not be seen.
        // SAFETY: a zone of the running configuration.
        unsafe { layout::left_at(memory) }.store(nginx::now(), SeqCst);
        fence(SeqCst);
    }
    let set = |upstrand: &Upstrand, parts: Parts| {
        // SAFETY: the parts are in the zone, which outlives the configuration, and hold a state.
        upstrand.memory.0.set(unsafe { parts.state() });
    };
    // SAFETY: as above, and memory from a slab of more than a page is aligned to a page.
    unsafe { layout::write(memory, zone.upstrands(), set) };
    for upstrand in zone.upstrands() {
        let known = match old {
            Some(old) => layout::take_over(old, upstrand)?,
            None => false,
        };
        if !known {
            let salt = nginx::now().rotate_left(7) ^ u64::from(std::process::id());
            upstrand.memory.shuffle(&upstrand.plan, salt);
        }
    }
    // SAFETY: the pool is ours.
    unsafe { (*pool).data = memory.as_ptr().cast() };
    Ok(())
}

/// For how long after a new configuration took a zone over nobody is to change the old one, in ms;
/// if that configuration fails after all, the old one goes on.
const LEAVING: u64 = 5000;

/// Whether another configuration has taken over the state of an upstrand.
pub fn is_left(upstrand: &Upstrand, now: u64) -> bool {
    // SAFETY: NULL, or a zone that lives as long as the configuration, and a slab pool; fill() set
    // its data.
    let memory = unsafe {
        let zone = upstrand.zone.as_ref();
        let pool = zone.and_then(|zone| zone.shm.addr.cast::<ngx_slab_pool_t>().as_ref());
        pool.and_then(|pool| NonNull::new(pool.data.cast::<u8>()))
    };
    // Pairs with the fence of fill(): a change that came before this is seen there.
    fence(SeqCst);
    // SAFETY: as above.
    let at = memory.map_or(0, |memory| unsafe { layout::left_at(memory) }.load(SeqCst));
    at > 0 && now.saturating_sub(at) < LEAVING
}

/// Runs `body` while no other worker runs one for an upstrand of the same zone. The lock is the slab
/// pool's, which nothing else takes at run time, and which the master opens if its holder dies.
pub fn exclusively<T>(upstrand: &Upstrand, body: impl FnOnce() -> T) -> T {
    struct Lock(*mut ngx_shmtx_t);

    impl Drop for Lock {
        fn drop(&mut self) {
            // SAFETY: this process holds it.
            unsafe { ngx_shmtx_unlock(self.0) };
        }
    }

    // SAFETY: NULL, or a zone that lives as long as the configuration, and a slab pool.
    let pool = unsafe { upstrand.zone.as_ref() }
        .and_then(|zone| unsafe { zone.shm.addr.cast::<ngx_slab_pool_t>().as_mut() });
    let _lock = pool.map(|pool| {
        // SAFETY: the pool's mutex, not held by this process.
        unsafe { ngx_shmtx_lock(&mut pool.mutex) };
        Lock(&mut pool.mutex)
    });
    body()
}

/// The zone of this name in the configuration that is running, as bytes: its address and size.
fn old_zone(name: &[u8]) -> Option<(NonNull<u8>, usize)> {
    // SAFETY: while a configuration is read ngx_cycle is the running one, or an empty one.
    let mut part: Option<&ngx_list_part_t> =
        unsafe { ngx_cycle.as_ref().map(|cycle| &cycle.shared_memory.part) };
    while let Some(zones) = part {
        let slice: &[ngx_shm_zone_t] = if zones.elts.is_null() {
            &[]
        } else {
            // SAFETY: the list holds `nelts` zones.
            unsafe { core::slice::from_raw_parts(zones.elts.cast(), zones.nelts) }
        };
        for zone in slice {
            let is_ours = zone
                .init
                .is_some_and(|f| f as usize == init as *const () as usize);
            if bytes(&zone.shm.name) == name && (is_ours || zone.noreuse != 0) {
                let pool = zone.shm.addr.cast::<ngx_slab_pool_t>();
                // SAFETY: a zone of the running configuration is mapped, and a slab pool.
                let data = unsafe { pool.as_ref().map(|pool| pool.data.cast::<u8>()) }?;
                let offset = (data as usize).checked_sub(pool as usize)?;
                let size = zone.shm.size.checked_sub(offset)?;
                return Some((NonNull::new(data)?, size));
            }
        }
        // SAFETY: the next part of the list, or NULL.
        part = unsafe { zones.next.as_ref() };
    }
    None
}
