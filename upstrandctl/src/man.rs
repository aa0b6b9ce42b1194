//! The man page, upstrandctl.1: made of the options, compared with the one that is there.

use std::path::Path;
use std::{env, fs};

use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_mangen::Man;
use roff::{bold, italic, roman, Inline, Roff};

use crate::cli::Cli;

/// Name of a section, and its paragraphs: what stands before them, and the text.
type Section = (&'static str, &'static [(&'static str, &'static str)]);

const SECTIONS: &[Section] = &[
    (
        "EXIT STATUS",
        &[
            (
                "0",
                "All well. For status: each upstrand has an upstream that is up or checking.",
            ),
            (
                "1",
                "The server refused or could not be reached; the message is on standard error.",
            ),
            ("2", "The command line is wrong, or names no URL."),
            (
                "3",
                "status: an upstrand has no upstream that is up or checking.",
            ),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            (
                "UPSTRAND_URL",
                "Where upstrand_api is, if there is no --url.",
            ),
            (
                "NO_COLOR",
                "If set and not empty there are no colours. They are for terminals only.",
            ),
            (
                "SSL_CERT_FILE, SSL_CERT_DIR",
                "Certificates to trust in place of the system's.",
            ),
        ],
    ),
    (
        "STATES",
        &[
            ("up", "It serves."),
            ("draining", "Taken out by hand: no new request visits it."),
            ("down", "All its servers are marked so in the configuration."),
            (
                "unavail",
                "Blacklisted, or nginx has no live server in it.",
            ),
            (
                "checking",
                "The time of its blacklisting is over; one request is about to find out.",
            ),
            ("unhealthy", "Not used at present."),
        ],
    ),
    (
        "EXAMPLES",
        &[
            (
                "upstrandctl --url http://127.0.0.1/api/ status",
                "All upstrands.",
            ),
            (
                "upstrandctl --url unix:/run/nginx.sock:/api/ watch regions",
                "One upstrand, again and again, over a unix socket.",
            ),
            (
                "upstrandctl drain regions eu",
                "Takes eu out of regions before work on it; undrain takes it back.",
            ),
            (
                "upstrandctl blacklist regions eu 5m",
                "As a failure of eu would, but for five minutes.",
            ),
        ],
    ),
    (
        "NOTES",
        &[(
            "",
            "Where an upstrand has no zone each worker of nginx has figures and blacklisted upstreams \
             of its own. One of them answers, and nothing can be changed. Proxies that the environment \
             names are not used.",
        )],
    ),
];

fn page() -> String {
    let mut command = Cli::command();
    command.build();
    let man = Man::new(command.clone())
        .source("")
        .manual("Combined upstreams for nginx");
    let mut page = Vec::new();
    for section in [Man::render_title, Man::render_name_section] {
        section(&man, &mut page).unwrap();
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let rest = " [OPTION ...] COMMAND [ARGUMENT ...]";
    roff.text([bold("upstrandctl"), roman(rest)]);
    roff.control("SH", ["DESCRIPTION"]);
    paragraphs(
        &mut roff,
        &command.get_long_about().unwrap().to_string(),
        "PP",
    );
    roff.control("SH", ["COMMANDS"]);
    for command in command.get_subcommands() {
        subcommand(&mut roff, command);
    }
    roff.control("SH", ["OPTIONS"]);
    for option in command.get_arguments() {
        argument(&mut roff, option);
    }
    for (title, paragraphs) in SECTIONS {
        roff.control("SH", [*title]);
        for (term, text) in *paragraphs {
            if !term.is_empty() {
                roff.control("TP", []);
                roff.text([bold(*term)]);
            }
            roff.text([roman(*text)]);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("nginx"), roman("(8)")]);
    roff.to_writer(&mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// A command and the options of its own.
fn subcommand(roff: &mut Roff, command: &Command) {
    let own = |argument: &&Arg| !argument.is_global_set() && argument.get_id() != "help";
    let mut line = vec![bold(command.get_name())];
    let own: Vec<&Arg> = command.get_arguments().filter(own).collect();
    for argument in &own {
        let (open, close) = if argument.is_required_set() {
            (" ", "")
        } else {
            (" [", "]")
        };
        line.push(roman(open));
        line.extend(usage(argument));
        line.push(roman(close));
    }
    roff.control("TP", []);
    roff.text(line);
    let about = command.get_long_about().or(command.get_about());
    paragraphs(roff, &about.unwrap().to_string(), "IP");
    roff.control("RS", []);
    for argument_of in own.iter().filter(|it| !it.is_positional()) {
        argument(roff, argument_of);
    }
    roff.control("RE", []);
}

fn argument(roff: &mut Roff, argument: &Arg) {
    roff.control("TP", []);
    let mut line = Vec::new();
    if let Some(short) = argument.get_short() {
        line.extend([bold(format!("-{short}")), roman(", ")]);
    }
    line.extend(usage(argument));
    if let [default] = argument.get_default_values() {
        if argument.get_action().takes_values() {
            line.push(roman(format!(" [{}]", default.to_string_lossy())));
        }
    }
    roff.text(line);
    // "Print help (see a summary with '-h')" and the like are the same for all.
    let help = match argument.get_action() {
        ArgAction::Help | ArgAction::HelpLong | ArgAction::HelpShort => None,
        _ => argument.get_long_help(),
    };
    paragraphs(
        roff,
        &help.or(argument.get_help()).unwrap().to_string(),
        "IP",
    );
}

fn usage(argument: &Arg) -> Vec<Inline> {
    let names = argument.get_value_names().unwrap_or_default().join(" ");
    match argument.get_long() {
        None => vec![italic(names)],
        Some(long) if argument.get_action().takes_values() => {
            vec![bold(format!("--{long}")), roman(" "), italic(names)]
        }
        Some(long) => vec![bold(format!("--{long}"))],
    }
}

fn paragraphs(roff: &mut Roff, text: &str, gap: &str) {
    for line in text.lines() {
        if line.is_empty() {
            roff.control(gap, []);
        } else {
            roff.text([roman(line)]);
        }
    }
}

#[test]
fn the_man_page_is_what_the_options_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("upstrandctl.1");
    let page = page();
    if env::var_os("UPSTRANDCTL_WRITE_MAN").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == there,
        "upstrandctl.1 is out of date: make man writes it"
    );
}
