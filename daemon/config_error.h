/* SPDX-License-Identifier: MIT */
/* Where and why a file was refused: "FILE:LINE: KEY: what was expected". */
#ifndef DAEMON_CONFIG_ERROR_H
#define DAEMON_CONFIG_ERROR_H

struct config_error {
	char text[1152];
};

#endif
