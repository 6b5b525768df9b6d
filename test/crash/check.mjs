/**
 * The judge: given everything that was sent and seen (the ledger as plain data, see `ledger.mjs`), is the end state one that
 * the guarantees allow? Pure, so that it can be tested with made-up histories.
 *
 * `ledger.audits` holds looks at the whole server, oldest first; each is judged, and all must show the same.
 */
import { checkChildren } from './check/children.mjs';
import { checkCrons } from './check/cron.mjs';
import { checkDurable, checkSteps } from './check/durable.mjs';
import { checkExports } from './check/exports.mjs';
import { index, jobsByToken } from './check/facts.mjs';
import { count } from './check/figures.mjs';
import { checkBatches, checkExistence, checkJob } from './check/jobs.mjs';
import { checkCounts, checkQuiet, checkSameLooks } from './check/looks.mjs';
import { checkOperators } from './check/operators.mjs';
import { checkOrder } from './check/ordered.mjs';
import { checkRuns } from './check/runs.mjs';
import { checkFresh, checkUnique } from './check/unique.mjs';
import { checkWorkflows } from './check/workflows.mjs';

/**
 * @param ledger as `Ledger.toJSON` gives it
 * @returns `{ violations: [{ rule, message, evidence }], counts }`
 */
export function check(ledger) {
  const violations = [];
  const facts = index(ledger);
  const fail = (rule, message, evidence) => violations.push({ rule, message, evidence });
  for (const [number, audit] of ledger.audits.entries()) {
    const found = jobsByToken(audit);
    const at = (rule, message, evidence) => fail(rule, `${message} (look ${number + 1})`, evidence);
    checkExistence(facts, found, at);
    checkBatches(ledger, found, at);
    for (const [token, jobs] of found) {
      const job = facts.jobs.get(token);
      if (job && jobs.length === 1) checkJob(facts, job, jobs[0], at);
    }
    checkCounts(audit, at);
    const look = { ledger, facts, audit, found };
    checkWorkflows(look, at);
    checkCrons(look, at);
    checkUnique(look, at);
    checkOperators(look, at);
    checkDurable(look, at);
    checkChildren(look, at);
    checkOrder(look, at);
  }
  checkRuns(facts, fail);
  checkSteps(ledger, facts, fail);
  checkSameLooks(ledger.audits, fail);
  checkQuiet(ledger, facts, fail);
  checkFresh(ledger, fail);
  checkExports(ledger, fail);
  for (const message of ledger.unexpected) fail('unexpected', message);
  return { violations, counts: count(ledger, facts) };
}
