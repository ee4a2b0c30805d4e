//! The line of an invalid value in its file. Checked values have no position, so the line is found
//! by the key or the name with which the problem begins, if exactly one line has it.

/// The problems, each with the line of its key or name.
pub(crate) fn with_lines(problems: Vec<String>, text: &str) -> Vec<String> {
    let located = problems.into_iter().map(|problem| match line_of(&problem, text) {
        Some(line) => format!("line {line}: {problem}"),
        None => problem,
    });
    located.collect()
}

fn line_of(problem: &str, text: &str) -> Option<usize> {
    let mut quoted = problem.split('`').skip(1).step_by(2);
    if problem.starts_with("route `") {
        let name = quoted.next()?;
        return find(text, 0, |line| has_value(line, "name", name));
    }
    if problem.starts_with("upstream `") {
        let name = quoted.next()?;
        let start = find(text, 0, |line| line.starts_with("upstreams:"))?;
        return find(text, start - 1, |line| line.contains(&format!("{name}:")));
    }
    let key = problem.split([':', '.', ' ']).next()?;
    let start =
        find(text, 0, |line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')))?;
    // The value in question, if a later line has it.
    let value = quoted.find_map(|word| find(text, start - 1, |line| line.contains(word)));
    Some(value.unwrap_or(start))
}

/// The number of the first line from `start` that satisfies the condition.
fn find(text: &str, start: usize, holds: impl Fn(&str) -> bool) -> Option<usize> {
    text.lines().enumerate().skip(start).find(|(_, line)| holds(line)).map(|(at, _)| at + 1)
}

/// Whether a line has this key with this value, quoted or not.
fn has_value(line: &str, key: &str, value: &str) -> bool {
    line.match_indices(&format!("{key}:")).any(|(at, found)| {
        let behind = line[at + found.len()..].trim_start().trim_start_matches(['"', '\'']);
        let rest = behind.strip_prefix(value);
        rest.is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || next == '-')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_gets_the_line_of_its_name_or_key() {
        let text = "name: x\nopen: [/health,\n  /nowhere]\nbudgets: {}\nupstreams:\n  u: {}\n  v: {}\n\
                    routes:\n  - {name: r10, path: /a}\n  - name: 'r1'\n    path: /b\n";
        for (problem, line) in [
            ("route `r1`: `scope` needs the section `auth`", Some(10)),
            ("route `r10`: there is no upstream `z`", Some(9)),
            ("upstream `v` has no address", Some(7)),
            ("open: `/nowhere` covers no route", Some(3)),
            ("budgets: belong to tenants", Some(4)),
            ("workers: at least 1", None),
        ] {
            assert_eq!(line_of(problem, text), line, "{problem}");
        }
    }
}
