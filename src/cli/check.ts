/** What `tocsin doctor` found. */
import { defined } from '../job/envelope/fields';

export interface Check {
  name: string;
  /** `warn`: it works, but not all of it; `fail`: it does not work. */
  status: 'ok' | 'warn' | 'fail';
  message: string;
  hint?: string;
}

const check =
  (status: Check['status']) =>
  (name: string, message: string, hint?: string): Check =>
    defined({ name, status, message, hint });
export const [ok, warned, failed] = [check('ok'), check('warn'), check('fail')];
