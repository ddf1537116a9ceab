//! The statement that sums up model calls.

use crate::spending::By;

/// The fields of a [`crate::SpendingQuery`] that are set.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) by: By,
    pub(crate) tree: bool,
    pub(crate) workspace: bool,
    pub(crate) since: bool,
    pub(crate) until: bool,
}

/// The columns are cost, input tokens, and key.
const COSTLIEST: &str = "9 DESC, 4 DESC, 1 DESC";

/// The label of a tree. Subagents have labels that their callers chose; a person looks for their own.
const OF_ROOT: &str = "COALESCE((SELECT label FROM runs WHERE id = made.root), made.label)";

/// Sums up model calls: the certain costs, and what interrupted and open calls may have spent in
/// addition. A run that has ended has no open call, so an engine without an index of open calls
/// searches only the unfinished runs. Binds: tree; workspace, since, until; the same three again;
/// limit.
pub(crate) fn spending(ask: Ask) -> String {
    let mut next = 1;
    let mut bind = || {
        next += 1;
        format!("${}", next - 1)
    };
    let below = match ask.tree {
        true => format!(
            "WITH RECURSIVE below (id) AS (SELECT id FROM runs WHERE id = {} UNION ALL \
             SELECT runs.id FROM runs JOIN below ON runs.parent = below.id) ",
            bind()
        ),
        false => String::new(),
    };
    let mut conditions = |run: &str, at: &str| {
        let mut all = String::new();
        if ask.tree {
            all.push_str(&format!(" AND {run} IN (SELECT id FROM below)"));
        }
        if ask.workspace {
            let folder = bind();
            all.push_str(&format!(
                " AND {run} IN (SELECT id FROM runs WHERE workspace = {folder})"
            ));
        }
        if ask.since {
            all.push_str(&format!(" AND {at} >= {}", bind()));
        }
        if ask.until {
            all.push_str(&format!(" AND {at} < {}", bind()));
        }
        all
    };
    let settled = conditions("run", "at");
    let settled = settled.replacen(" AND", " WHERE", 1);
    let open = conditions("id", "updated_at");
    let (key, order) = match ask.by {
        By::Nothing => ("''", "1"),
        By::Run => ("run", COSTLIEST),
        By::Tree => ("root", COSTLIEST),
        By::Agent => ("agent", COSTLIEST),
        By::Model => ("model", COSTLIEST),
        By::Label => (OF_ROOT, COSTLIEST),
        By::Day => ("CAST(at / 86400000 AS TEXT)", "1 DESC"),
    };
    let sum = |column: &str| format!("CAST(SUM({column}) AS BIGINT)");
    let sums = [
        "input_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "output_tokens",
        "reasoning_tokens",
    ]
    .map(sum)
    .join(", ");
    let (cost, unanswered) = (sum("cost"), sum("unanswered"));
    let uncertain = ["uncertain_input", "uncertain_output", "uncertain_cost"].map(sum).join(", ");
    format!(
        "{below}SELECT {key}, COUNT(DISTINCT run), COUNT(*), {sums}, {cost}, {unanswered}, \
         {uncertain} FROM (SELECT run, at, root, agent, model, label, \
         input_tokens - uncertain_input AS input_tokens, cache_read_tokens, cache_write_tokens, \
         output_tokens - uncertain_output AS output_tokens, reasoning_tokens, \
         cost - uncertain_cost AS cost, uncertain_input, uncertain_output, uncertain_cost, \
         CASE WHEN ending = 'unanswered' OR uncertain_input + uncertain_output + uncertain_cost > 0 \
         THEN 1 ELSE 0 END AS unanswered FROM model_calls{settled} \
         UNION ALL SELECT id, updated_at, root, agent, calling, label, 0, 0, 0, 0, 0, 0, \
         reserved_input, reserved_output, reserved_cost, 1 \
         FROM runs WHERE calling IS NOT NULL AND outcome IS NULL{open}) AS made \
         GROUP BY 1 ORDER BY {order} LIMIT {}",
        bind()
    )
}
