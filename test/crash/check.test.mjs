/** The judge must find what it is there for. Its tests stand with each subject. */
import './check/jobs.test.mjs';
import './check/workflows.test.mjs';
import './check/cron.test.mjs';
import './check/unique.test.mjs';
import './check/operators.test.mjs';
import './check/durable.test.mjs';
import './check/children.test.mjs';
import './check/ordered.test.mjs';
