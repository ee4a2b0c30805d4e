//! Flags that had another name in an earlier version: the old name still works, and a note names
//! the new one.

use std::ffi::OsString;

/// Command (empty for every command), old flag, new flag. Since 0.2.
const RENAMED: [(&str, &str, &str); 3] =
    [("", "--vk", "--key"), ("gateway", "--persona", "--preset"), ("mock", "--addr", "--listen")];

/// The command line with every old name replaced, and a note for each replaced name.
///
/// Arguments after `--` belong to another program and stay as they are.
pub(crate) fn replace(args: impl IntoIterator<Item = OsString>) -> (Vec<OsString>, Vec<String>) {
    let mut args: Vec<_> = args.into_iter().collect();
    let mut notes = Vec::new();
    let command = args.get(1).cloned().unwrap_or_default();
    for arg in args.iter_mut().skip(1).take_while(|arg| *arg != "--") {
        let Some(text) = arg.to_str() else { continue };
        let (flag, value) = text.split_at(text.find('=').unwrap_or(text.len()));
        let known = RENAMED
            .iter()
            .find(|(of, old, _)| *old == flag && (of.is_empty() || command.as_os_str() == *of));
        let Some((_, old, new)) = known else { continue };
        let note = format!("note: {old} is now called {new}");
        if !notes.contains(&note) {
            notes.push(note);
        }
        *arg = format!("{new}{value}").into();
    }
    (args, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(line: &str) -> (String, Vec<String>) {
        let (args, notes) = replace(line.split(' ').map(OsString::from));
        let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        (words.join(" "), notes)
    }

    #[test]
    fn old_flag_names_are_replaced_with_one_note_each() {
        for (line, new, noted) in [
            ("p run x --vk k", "p run x --key k", "--vk is now called --key"),
            ("p run x --vk=k --vk=k", "p run x --key=k --key=k", "--vk is now called --key"),
            (
                "p gateway --persona llm",
                "p gateway --preset llm",
                "--persona is now called --preset",
            ),
            ("p mock --addr a:1", "p mock --listen a:1", "--addr is now called --listen"),
        ] {
            let (args, notes) = replaced(line);
            assert_eq!((args.as_str(), notes), (new, vec![format!("note: {noted}")]), "{line}");
        }
    }

    #[test]
    fn other_arguments_stay_unchanged() {
        for line in ["p", "p run x --key k", "p run --addr a:1", "p suite child -- gateway --vk k"]
        {
            assert_eq!(replaced(line), (line.to_owned(), vec![]));
        }
    }
}
