//! Regexes over names of upstreams.

use nginx_sys::ngx_str_t;

use crate::nginx::{memory, Conf, ConfResult, SrvConf};

/// A compiled regex; it lives as long as the configuration.
pub struct Regex {
    /// The regex as written.
    pub pattern: ngx_str_t,
    #[cfg(ngx_feature = "pcre2")]
    compiled: *mut nginx_sys::ngx_regex_t,
}

#[cfg(ngx_feature = "pcre2")]
impl Regex {
    /// Compiles a regex: case-sensitive and unanchored, as PCRE has it.
    pub fn compile(conf: Conf, pattern: &[u8]) -> ConfResult<Regex> {
        use crate::nginx::{bytes, string, Refused, Text, OK};
        use nginx_sys::{ngx_regex_compile, ngx_regex_compile_t, NGX_MAX_CONF_ERRSTR};

        let pool = conf.pool()?;
        let pattern = pool.copy(pattern).ok_or(Refused::Logged)?;
        let mut err = [0u8; NGX_MAX_CONF_ERRSTR as usize];
        // SAFETY: zeros are an empty ngx_regex_compile_t.
        let mut rc: ngx_regex_compile_t = unsafe { core::mem::zeroed() };
        rc.pattern = pattern;
        rc.pool = pool.as_ptr();
        rc.err = string(&err);
        rc.err.data = err.as_mut_ptr();
        // SAFETY: pattern, pool and room for the message are set.
        if unsafe { ngx_regex_compile(&mut rc) } != OK {
            return conf.refuse(format_args!("{}", Text(bytes(&rc.err))));
        }
        Ok(Regex {
            pattern,
            compiled: rc.regex,
        })
    }

    /// The upstreams declared so far whose names it matches, in the order of declaration.
    pub fn matching(&self, conf: Conf) -> ConfResult<Vec<SrvConf>> {
        let is_matched = |uscf: &SrvConf| {
            let mut name = uscf.fields().host;
            // SAFETY: the regex is compiled; no captures are asked for.
            let rc = unsafe {
                nginx_sys::ngx_regex_exec(self.compiled, &mut name, core::ptr::null_mut(), 0)
            };
            uscf.is_declared() && rc >= 0
        };
        memory::collect(conf.upstreams().filter(is_matched))
    }
}

#[cfg(not(ngx_feature = "pcre2"))]
impl Regex {
    /// Refuses: this nginx was built without PCRE2.
    pub fn compile(conf: Conf, pattern: &[u8]) -> ConfResult<Regex> {
        conf.refuse(format_args!(
            "using regex \"~{}\" requires PCRE2 library",
            crate::nginx::Text(pattern)
        ))
    }

    /// Nothing.
    pub fn matching(&self, _conf: Conf) -> ConfResult<Vec<SrvConf>> {
        Ok(Vec::new())
    }
}
