/*
 * Bit fields of ngx_http_request_t: their places differ between nginx's releases, and bindgen 0.72
 * gets some of them wrong.  Here the C compiler places them.  The probe below lets the module
 * compare the bit fields that it reads through the bindings with what the C compiler says.
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* What an answer may change, and a further try must find as it was. */

#if (NGX_HTTP_CACHE)
#define CU_CACHED(F)  F(cached)
#else
#define CU_CACHED(F)
#endif

#define CU_SAVED(F)                                                           \
    F(header_only)                                                            \
    F(keepalive)                                                              \
    F(lingering_close)                                                        \
    F(allow_ranges)                                                           \
    F(single_range)                                                           \
    F(disable_not_modified)                                                   \
    F(expect_tested)                                                          \
    F(limit_rate_set)                                                         \
    F(limit_rate_after_set)                                                   \
    CU_CACHED(F)


/* All bit fields of a request lie between these two. */

#define CU_BITS       (offsetof(ngx_http_request_t, cleanup) + sizeof(void *))
#define CU_BITS_SIZE  (offsetof(ngx_http_request_t, state) - CU_BITS)

/* SavedFlags in src/nginx/request.rs */

typedef struct {
    uint64_t  bits[4];
} ngx_http_cu_flags_t;

_Static_assert(CU_BITS_SIZE <= sizeof(ngx_http_cu_flags_t), "more flags");


/* They are saved as they lie, as most walks never restore them. */

void
ngx_http_cu_save(ngx_http_request_t *r, ngx_http_cu_flags_t *saved)
{
    ngx_memcpy(saved, (u_char *) r + CU_BITS, CU_BITS_SIZE);
}


void
ngx_http_cu_restore(ngx_http_request_t *r, const ngx_http_cu_flags_t *saved)
{
    ngx_http_request_t  was;

    ngx_memcpy((u_char *) &was + CU_BITS, saved, CU_BITS_SIZE);

#define CU_RESTORE(field)  r->field = was.field;
    CU_SAVED(CU_RESTORE)
}


void
ngx_http_cu_restore_error_page(ngx_http_request_t *r,
    const ngx_http_cu_flags_t *saved)
{
    ngx_http_request_t  was;

    ngx_memcpy((u_char *) &was + CU_BITS, saved, CU_BITS_SIZE);
    r->error_page = was.error_page;
}


/* Whether each of them comes back. */

ngx_uint_t
ngx_http_cu_saves(void)
{
    ngx_uint_t           saves;
    ngx_http_request_t   r;
    ngx_http_cu_flags_t  saved;

    saves = 1;

#define CU_SAVES(field)                                                       \
    ngx_memzero(&r, sizeof(ngx_http_request_t));                              \
    r.field = 1;                                                              \
    ngx_http_cu_save(&r, &saved);                                             \
    r.field = 0;                                                              \
    ngx_http_cu_restore(&r, &saved);                                          \
    saves &= r.field;

    CU_SAVED(CU_SAVES)

    ngx_memzero(&r, sizeof(ngx_http_request_t));
    r.error_page = 1;
    ngx_http_cu_save(&r, &saved);
    r.error_page = 0;
    ngx_http_cu_restore_error_page(&r, &saved);

    return saves & r.error_page;
}


#define CU_GET(field)                                                         \
    ngx_uint_t                                                                \
    ngx_http_cu_##field(ngx_http_request_t *r)                                \
    {                                                                         \
        return r->field;                                                      \
    }

#define CU_SET(field)                                                         \
    void                                                                      \
    ngx_http_cu_set_##field(ngx_http_request_t *r, ngx_uint_t value)          \
    {                                                                         \
        r->field = value;                                                     \
    }

CU_GET(header_only)
CU_SET(header_only)
CU_SET(error_page)
CU_SET(disable_not_modified)
CU_GET(request_body_no_buffering)
CU_SET(request_body_no_buffering)
CU_GET(background)
CU_GET(reading_body)

#if (NGX_HTTP_CACHE)
CU_GET(cached)
#endif


/* As the answer's own stale-if-error has it. */

void
ngx_http_cu_want_stale(ngx_http_request_t *r)
{
#if (NGX_HTTP_CACHE)
    if (r->cache) {
        r->cache->stale_error = 1;
    }
#endif
}


ngx_uint_t
ngx_http_cu_cache_status(ngx_http_upstream_t *u)
{
#if (NGX_HTTP_CACHE)
    return u->cache_status;
#else
    return 0;
#endif
}


/*
 * A request that waits until another one has filled a cache entry (proxy_cache_lock) waits no
 * longer, as if proxy_cache_lock_timeout were over.
 */

void
ngx_http_cu_stop_waiting(ngx_http_request_t *r)
{
#if (NGX_HTTP_CACHE)
    ngx_http_cache_t  *c;

    c = r->cache;

    if (c == NULL || !c->waiting) {
        return;
    }

    c->wait_time = ngx_current_msec;

    if (c->wait_event.timer_set) {
        ngx_del_timer(&c->wait_event);
    }

    ngx_add_timer(&c->wait_event, 1);
#endif
}


/*
 * The filter of slices runs before ours: it has taken a partial answer that is dropped for the
 * first slice, and would expect the second one of the next upstream.  Without a context it makes
 * one when $slice_range is evaluated, as after any other answer.
 */

void
ngx_http_cu_forget_slice(ngx_http_request_t *r)
{
    ngx_uint_t     i;
    ngx_module_t  *module;

    for (i = 0; ngx_cycle->modules[i]; i++) {
        module = ngx_cycle->modules[i];

        if (module->type == NGX_HTTP_MODULE && module->name
            && ngx_strcmp(module->name, "ngx_http_slice_filter_module") == 0)
        {
            r->ctx[module->ctx_index] = NULL;
        }
    }
}


/*
 * Acknowledges what has come at once: a peer that sends header and body apart may hold the body
 * back until then.
 */

void
ngx_http_cu_quickack(ngx_connection_t *c)
{
#ifdef TCP_QUICKACK
    int  on;

    on = 1;
    (void) setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(int));
#endif
}


/* Takes a reference on the main request. */

void
ngx_http_cu_hold(ngx_http_request_t *r)
{
    r->main->count++;
}


/*
 * Values of variables: the bindings write the 28 bits of a length one by one.
 */

void
ngx_http_cu_set_value(ngx_http_variable_value_t *v, u_char *data, size_t len)
{
    v->data = data;
    v->len = len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
}


ngx_str_t
ngx_http_cu_value(ngx_http_variable_value_t *v)
{
    ngx_str_t  text;

    text.len = (v->valid && !v->not_found) ? v->len : 0;
    text.data = v->data;

    return text;
}


/* Fills p with zeros but for one bit field; returns the size, 0 past the end. */

size_t
ngx_http_cu_probe(ngx_uint_t n, void *p)
{
#define CU_BIT(i, type, field, value)                                         \
    case i:                                                                   \
        ngx_memzero(p, sizeof(type));                                         \
        ((type *) p)->field = value;                                          \
        return sizeof(type);

    switch (n) {
    CU_BIT(0, ngx_http_upstream_t, store, 1)
    CU_BIT(1, ngx_http_upstream_t, cacheable, 1)
    CU_BIT(2, ngx_http_headers_in_t, chunked, 1)
    CU_BIT(3, ngx_http_upstream_t, keepalive, 1)
    CU_BIT(4, ngx_http_upstream_t, upgrade, 1)
    CU_BIT(5, ngx_http_upstream_t, request_sent, 1)
    CU_BIT(6, ngx_http_upstream_t, header_sent, 1)
    CU_BIT(7, ngx_http_upstream_headers_in_t, connection_close, 1)
    CU_BIT(8, ngx_event_t, timedout, 1)
    CU_BIT(9, ngx_event_t, timer_set, 1)
    CU_BIT(10, ngx_event_t, eof, 1)
    CU_BIT(11, ngx_event_t, error, 1)
    CU_BIT(12, ngx_connection_t, error, 1)
    CU_BIT(13, ngx_http_variable_value_t, no_cacheable, 1)
    CU_BIT(14, ngx_http_variable_value_t, not_found, 1)
    CU_BIT(15, ngx_http_upstream_server_t, backup, 1)
    CU_BIT(16, ngx_buf_t, memory, 1)
    CU_BIT(17, ngx_buf_t, last_buf, 1)
    CU_BIT(18, ngx_buf_t, temporary, 1)
    CU_BIT(19, ngx_url_t, no_resolve, 1)
    CU_BIT(20, ngx_url_t, no_port, 1)
    CU_BIT(21, ngx_http_core_loc_conf_t, noname, 1)
    default:
        return 0;
    }
}


/*
 * The peers of an upstream that round robin keeps for its method, each group as it is at one
 * moment: the first `max` of them are copied, all are counted.  A peer of the name `fake` is left
 * out.  A group has a lock of its own: peers of backups come and go under that of theirs.
 */

typedef struct {
    ngx_uint_t   total;
    ngx_uint_t   down;
    ngx_uint_t   live;
} ngx_http_cu_tally_t;

typedef struct {
    ngx_str_t    server;
    ngx_str_t    name;
    ngx_uint_t   weight;
    ngx_uint_t   active;
    ngx_uint_t   max_conns;
    ngx_uint_t   fails;
    ngx_uint_t   max_fails;
    ngx_uint_t   fail_timeout;
    ngx_uint_t   backup;
    ngx_uint_t   down;
    ngx_uint_t   live;
} ngx_http_cu_peer_t;


/* As round robin decides whether a request may be sent to a peer. */

static ngx_uint_t
ngx_http_cu_peer_is_live(ngx_http_upstream_rr_peers_t *peers,
    ngx_http_upstream_rr_peer_t *peer, time_t now)
{
    if (peer->down || (peer->max_conns && peer->conns >= peer->max_conns)) {
        return 0;
    }

    return peers->single
           || peer->max_fails == 0
           || peer->fails < peer->max_fails
           || now - peer->checked > peer->fail_timeout;
}


void
ngx_http_cu_peers(ngx_http_upstream_srv_conf_t *us, ngx_pool_t *pool,
    ngx_str_t *fake, ngx_http_cu_peer_t *out, ngx_uint_t max,
    ngx_http_cu_tally_t *tally)
{
    time_t                         now;
    ngx_uint_t                     backup, live;
    ngx_http_upstream_rr_peer_t   *peer;
    ngx_http_upstream_rr_peers_t  *peers, *part;

    now = ngx_time();
    peers = us->peer.data;

    for (part = peers, backup = 0; part; part = part->next, backup = 1) {

        ngx_http_upstream_rr_peers_rlock(part);

        for (peer = part->peer; peer; peer = peer->next) {

            if (peer->server.len == fake->len
                && ngx_memcmp(peer->server.data, fake->data, fake->len) == 0)
            {
                continue;
            }

            live = ngx_http_cu_peer_is_live(part, peer, now);

            if (tally->total < max) {
                out->server.data = ngx_pstrdup(pool, &peer->name);
                out->server.len = out->server.data ? peer->name.len : 0;
                out->name.data = ngx_pstrdup(pool, &peer->server);
                out->name.len = out->name.data ? peer->server.len : 0;
                out->weight = peer->weight;
                out->active = peer->conns;
                out->max_conns = peer->max_conns;
                out->fails = peer->fails;
                out->max_fails = peer->max_fails;
                out->fail_timeout = peer->fail_timeout * 1000;
                out->backup = backup;
                out->down = peer->down ? 1 : 0;
                out->live = live;
                out++;
            }

            tally->total++;
            tally->down += peer->down ? 1 : 0;
            tally->live += live;
        }

        ngx_http_upstream_rr_peers_unlock(part);
    }
}
