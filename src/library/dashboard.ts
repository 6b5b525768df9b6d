/** The dashboard of a Worker that holds the queue. */
import * as built from '../http/ui/built';
import { serveDashboard } from '../http/ui/routes';

/** The Worker that calls this serves it. */
export function withDashboard(): void {
  serveDashboard(built);
}
