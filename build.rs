//! Hands what nginx was configured with to the code, and compiles the C shim.

use std::env;
use std::process::exit;

const OLDEST: u32 = 1_022_000;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/shim.c");

    let version = var("DEP_NGINX_VERSION_NUMBER")
        .parse::<u32>()
        .unwrap_or_default();
    if version < OLDEST {
        println!(
            "cargo:warning={} is too old: this module needs nginx 1.22.0 or later",
            var("DEP_NGINX_VERSION")
        );
        exit(1);
    }

    let known = var("DEP_NGINX_FEATURES_CHECK");
    println!("cargo:rustc-check-cfg=cfg(ngx_feature, values({known}))");
    let features = var("DEP_NGINX_FEATURES");
    for feature in features.split(',').filter(|feature| !feature.is_empty()) {
        println!("cargo:rustc-cfg=ngx_feature=\"{feature}\"");
    }

    // nginx resolves names of servers at run time, and its structures have the fields for it.
    println!("cargo:rustc-check-cfg=cfg(upstream_resolve)");
    if version >= 1_027_003 && features.split(',').any(|f| f == "http_upstream_zone") {
        println!("cargo:rustc-cfg=upstream_resolve");
    }

    cc::Build::new()
        .file("src/shim.c")
        .includes(env::split_paths(&var("DEP_NGINX_INCLUDE")))
        .warnings(false)
        .compile("combined_upstreams_shim");
}

fn var(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
