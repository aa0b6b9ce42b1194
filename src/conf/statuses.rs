//! Lists of status words.

use walk::{Statuses, Word};

use crate::nginx::{memory, Conf, ConfResult, Text};

/// Parses word `n` of the directive.
pub fn word(conf: Conf, n: usize) -> ConfResult<Word> {
    let text = conf.arg(n);
    match Word::parse(text) {
        Ok(word) => Ok(word),
        Err(_) => conf.refuse(format_args!("invalid value \"{}\"", Text(text))),
    }
}

/// Adds a word to a list; one that stood there already is warned of, as nginx does it.
pub fn add(
    conf: Conf,
    statuses: &mut Statuses,
    words: &mut Vec<Word>,
    word: Word,
    n: usize,
) -> ConfResult {
    if words.contains(&word) {
        conf.warn(format_args!("duplicate value \"{}\"", Text(conf.arg(n))));
        return Ok(());
    }
    memory::push(words, word)?;
    statuses.add(word);
    Ok(())
}
