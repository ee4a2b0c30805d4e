//! Finds parts of pages.

use serde_json::Value;

/// The page without the scripts at its end, which draw its charts.
pub(crate) fn without_scripts(html: &str) -> &str {
    html.split("<script>").next().unwrap()
}

/// The charts of a page, with id and data sets.
pub(crate) fn charts(html: &str) -> Vec<(String, Value)> {
    let sections = without_scripts(html).split("<section id=\"").skip(1);
    let drawn = sections.filter(|section| section.contains("<div class=\"chart\""));
    drawn
        .map(|section| {
            let id = section.split('"').next().unwrap();
            let json = section.split("<script type=\"application/json\">").nth(1).unwrap();
            let json: Value =
                serde_json::from_str(json.split("</script>").next().unwrap()).unwrap();
            assert!(json["spec"].is_object(), "{id} has a specification");
            (id.to_owned(), json["data"].clone())
        })
        .collect()
}

/// The data sets of one chart.
pub(crate) fn data(html: &str, id: &str) -> Value {
    charts(html).into_iter().find(|(name, _)| name == id).unwrap().1
}

/// The values of a member in all rows of a data set, without `null`.
pub(crate) fn numbers(rows: &Value, key: &str) -> Vec<f64> {
    rows.as_array().unwrap().iter().filter_map(|row| row[key].as_f64()).collect()
}

/// The texts of a member in all rows of a data set.
pub(crate) fn texts<'v>(rows: &'v Value, key: &str) -> Vec<&'v str> {
    rows.as_array().unwrap().iter().filter_map(|row| row[key].as_str()).collect()
}

/// The cells of the rows of a chart's table.
pub(crate) fn rows(html: &str, id: &str) -> Vec<Vec<String>> {
    let section = html.split(&format!("<section id=\"{id}\"")).nth(1).unwrap();
    let table = section.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    table
        .split("<tr>")
        .skip(1)
        .map(|row| -> Vec<String> {
            let cells = row.split("<td>").skip(1);
            cells.map(|cell| cell.split("</td>").next().unwrap().to_owned()).collect()
        })
        .collect()
}
