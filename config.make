# Without the cargo feature export-modules the library has no tables of modules: nginx's build
# makes them. cargo is run each time, and knows best whether there is anything to do.

cat << END                                                    >> $NGX_MAKEFILE

$combined_upstreams_lib: combined_upstreams_cargo
	NGINX_SOURCE_DIR="\$\$(pwd)" NGINX_BUILD_DIR="\$\$(cd $NGX_OBJS && pwd)" \\
	cargo rustc --lib --release --locked --crate-type staticlib \\
	    --no-default-features --manifest-path $ngx_addon_dir/Cargo.toml \\
	    --target-dir $NGX_OBJS/ngx_http_combined_upstreams_module

.PHONY: combined_upstreams_cargo

$NGX_OBJS/ngx_http_combined_upstreams_module.so: $combined_upstreams_lib

END
