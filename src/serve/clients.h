/* SPDX-License-Identifier: MIT */
/*
 * clients: who is connected to the server, and who goes when there are too many.
 *
 * A client asks once its request is there as a whole, until its answer is ready. Others may say nothing, or
 * send or read a byte now and then, for as long as they like, but not keep out others: when one more comes,
 * the one goes that has not asked for the longest; where all have asked, the one whose answer has been ready
 * for the longest.
 *
 * One thread admits, adds and removes clients. Any thread may note what they do.
 */
#ifndef LJSPY_CLIENTS_H
#define LJSPY_CLIENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	CLIENTS_MAX = 64,
	CLIENTS_LEAVING_MAX = 64, /* more of them, whose connections are shut but not removed yet */
};

/* The first ones go first. */
enum client_state {
	CLIENT_SILENT, /* it has no whole request yet */
	CLIENT_READS,  /* its answer is ready */
	CLIENT_ASKS,   /* never goes */
};

struct client {
	int fd; /* -1: none */
	enum client_state state;
	bool leaves;
	uint64_t since; /* it came or was noted last, by clients.events */
};

struct clients {
	pthread_mutex_t lock;
	struct client all[CLIENTS_MAX + CLIENTS_LEAVING_MAX];
	uint64_t events;
};

void clients_begin(struct clients *clients);
void clients_end(struct clients *clients);

/* May one more come? False if all ask. May shut the connection of one that does not ask. */
bool clients_admit(struct clients *clients);

/* The descriptor is borrowed until clients_remove(). NULL if there is no place. */
struct client *clients_add(struct clients *clients, int fd);
void clients_remove(struct clients *clients, struct client *client);

void clients_note(struct clients *clients, struct client *client, enum client_state state);

#endif
