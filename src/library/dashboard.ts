import * as built from '../http/ui/built';
import { serveDashboard } from '../http/ui/routes';

export function withDashboard(): void {
  serveDashboard(built);
}
