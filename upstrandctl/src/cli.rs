//! The command line.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::time;

/// Shows what upstrands in a running nginx do, and takes upstreams out and back by hand
///
/// It asks a location of nginx that has the directive upstrand_api. Changes need an upstrand with a
/// zone; they hold for all workers, and until they are taken back.
#[derive(Debug, Parser)]
#[command(
    name = "upstrandctl",
    version,
    disable_help_subcommand = true,
    subcommand_help_heading = "Commands",
    after_help = "Exit status: 0 all well, 1 refused or not reached, 2 wrong usage, 3 (status) an upstrand has no usable upstream"
)]
pub struct Cli {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Options {
    /// Where upstrand_api is: http://HOST[:PORT]/PATH, https://..., or unix:/SOCKET:/PATH
    ///
    /// The URL of the location that has the directive, with or without a slash at its end. A unix
    /// socket is written as in proxy_pass, with or without the http:// before it. A user and a
    /// password may stand before the host: http://USER:PASSWORD@HOST/.
    #[arg(
        long,
        global = true,
        env = "UPSTRAND_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub url: Option<String>,
    /// A header to send, such as 'Authorization: Bearer ...'; may be repeated
    #[arg(short = 'H', long, global = true, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// How long to wait for an answer: 5s, 500ms
    #[arg(long, global = true, default_value = "5s", value_name = "TIME", value_parser = time::parse_span)]
    pub timeout: Duration,
    /// Print what the server answered, and nothing else
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show upstreams, their states and figures
    ///
    /// A line for each upstream: its state, since when and why, tries and failures of it, connections at
    /// work, servers that live. Below, for each upstrand that is not all well, who serves instead.
    Status {
        /// This upstrand only
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: Option<String>,
    },
    /// Show the status again and again, until Ctrl-C
    Watch {
        /// This upstrand only
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: Option<String>,
        /// Time from one to the next
        #[arg(long, default_value = "2s", value_name = "TIME", value_parser = time::parse_span)]
        interval: Duration,
    },
    /// Show where a request that came now would go, and why
    Explain {
        /// An upstrand
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
    },
    /// Take an upstream out: no new request visits it
    ///
    /// Requests that are with it go on. The last usable upstream of an upstrand is not taken out without
    /// --force.
    Drain {
        #[command(flatten)]
        member: Member,
        /// Also if it is the last usable one
        #[arg(long)]
        force: bool,
    },
    /// Take back what drain did
    Undrain {
        #[command(flatten)]
        member: Member,
    },
    /// Blacklist an upstream, as a failure would
    ///
    /// When the time is over one request asks it, and its answer decides.
    Blacklist {
        #[command(flatten)]
        member: Member,
        /// For how long: 30s, 500ms, 1h30m
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        time: String,
    },
    /// End the blacklisting of an upstream, whoever began it
    Unblacklist {
        #[command(flatten)]
        member: Member,
    },
    /// Print completion for a shell
    Completion {
        /// The shell
        #[arg(value_parser = shell)]
        shell: Shell,
    },
}

/// An upstream in an upstrand.
#[derive(Debug, Args)]
pub struct Member {
    /// An upstrand
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub name: String,
    /// An upstream in it
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub upstream: String,
}

fn shell(name: &str) -> Result<Shell, String> {
    match name {
        "bash" => Ok(Shell::Bash),
        "zsh" => Ok(Shell::Zsh),
        "fish" => Ok(Shell::Fish),
        _ => Err("bash, zsh and fish are known".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
