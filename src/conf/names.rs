//! Declared upstreams by name, without a search through nginx's list.

use std::collections::HashMap;

use crate::nginx::memory::lowercase;
use crate::nginx::{Conf, ConfResult, SrvConf};

/// An index over nginx's list of upstreams, which only grows while a configuration is read.
#[derive(Default)]
pub struct Names {
    first: HashMap<Vec<u8>, SrvConf>,
    indexed: usize,
}

impl Names {
    /// The upstream that was declared under this name so far. What nginx made from a URL is none.
    pub fn declared(&mut self, conf: Conf, name: &[u8]) -> ConfResult<Option<SrvConf>> {
        for uscf in conf.upstreams_from(self.indexed) {
            self.first.try_reserve(1)?;
            self.first.entry(lowercase(uscf.name())?).or_insert(uscf);
            self.indexed = self.indexed.saturating_add(1);
        }
        let found = self.first.get(&lowercase(name)?).copied();
        Ok(found.filter(|uscf| uscf.is_declared()))
    }
}
