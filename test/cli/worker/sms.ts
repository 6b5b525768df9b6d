/** The handler Worker that the tests start late. */
import { defineHandlers } from '../../../src/handler';

export default defineHandlers({ 'sms.send': (job) => `sent to ${job.args[0]}` });
