//! Declared upstreams by name, without a search through nginx's list.

use std::collections::HashMap;

use crate::nginx::memory::lowercase;
use crate::nginx::{Conf, ConfResult, SrvConf};

/// An index over nginx's list of upstreams, which only grows while a configuration is read.
#[derive(Default)]
pub struct Names {
    first: HashMap<Vec<u8>, usize>,
    indexed: usize,
}

impl Names {
    /// The upstream that was declared under this name so far. What nginx made from a URL is none.
    pub fn declared(&mut self, conf: Conf, name: &[u8]) -> ConfResult<Option<SrvConf>> {
        let all = conf.upstreams();
        for (index, uscf) in all.iter().enumerate().skip(self.indexed) {
            // SAFETY: an upstream of the configuration at hand.
            if let Some(uscf) = unsafe { SrvConf::from_ptr(*uscf) } {
                self.first.try_reserve(1)?;
                self.first.entry(lowercase(uscf.name())?).or_insert(index);
            }
        }
        self.indexed = all.len();

        let index = self.first.get(&lowercase(name)?);
        let found = index.and_then(|index| all.get(*index));
        // SAFETY: as above.
        let uscf = found.and_then(|uscf| unsafe { SrvConf::from_ptr(*uscf) });
        Ok(uscf.filter(|uscf| uscf.is_declared()))
    }
}
