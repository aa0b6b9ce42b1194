//! Declared upstreams by name, without a search through nginx's list.

use std::collections::HashMap;

use crate::nginx::{lowercase, Conf, SrvConf};

/// An index over nginx's list of upstreams, which only grows while a configuration is read.
#[derive(Default)]
pub struct Names {
    first: HashMap<Box<[u8]>, usize>,
    indexed: usize,
}

impl Names {
    /// The upstream that was declared under this name so far. What nginx made from a URL is none.
    pub fn declared(&mut self, conf: Conf, name: &[u8]) -> Option<SrvConf> {
        let all = conf.upstreams();
        for (index, uscf) in all.iter().enumerate().skip(self.indexed) {
            // SAFETY: an upstream of the configuration at hand.
            if let Some(uscf) = unsafe { SrvConf::from_ptr(*uscf) } {
                self.first.entry(lowercase(uscf.name())).or_insert(index);
            }
        }
        self.indexed = all.len();

        let index = self.first.get(&lowercase(name))?;
        // SAFETY: as above.
        let uscf = unsafe { SrvConf::from_ptr(*all.get(*index)?) }?;
        uscf.is_declared().then_some(uscf)
    }
}
