/** Gives the Worker that imports this its dashboard. */
import * as built from '../http/ui/built';
import { serveDashboard } from '../http/ui/routes';

serveDashboard(built);
