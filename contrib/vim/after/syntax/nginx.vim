" ngx_http_combined_upstreams_module: adds its directives to Vim's nginx syntax. Copy this file to
" ~/.vim/after/syntax/nginx.vim, or append it to the one that is there.

" nginx's own syntax file (contrib/vim) looks for directives inside ngxName, Vim's anywhere.
let s:place = hlexists('ngxName') ? 'contained ' : ''

execute 'syn keyword ngxDirectiveBlock ' . s:place . 'upstrand'
execute 'syn keyword ngxDirectiveThirdParty ' . s:place
      \ . 'add_upstream combine_server_singlets extend_single_peers dynamic_upstrand upstrand_status upstrand_api'
" `upstream` and `zone` inside upstrand{} are known as nginx's own.
execute 'syn keyword ngxDirectiveThirdParty ' . s:place
      \ . 'order next_upstream_statuses next_upstream_timeout next_upstream_tries intercept_statuses'

unlet s:place
